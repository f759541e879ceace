package roce

// PSN is a packet sequence number: 24 bits that wrap around. A window must be smaller than half of them (InfiniBand
// vol. 1).
type PSN uint32

const psnMask = 1<<24 - 1

// Add is the PSN n packets on.
func (p PSN) Add(n uint32) PSN { return (p + PSN(n)) & psnMask }

// Sub returns how far p is ahead of q, negative if it is behind.
func (p PSN) Sub(q PSN) int32 { return int32((p-q)<<8) >> 8 }
