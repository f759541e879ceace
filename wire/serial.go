package wire

// Sequence numbers wrap; they are compared as RFC 1982 says, by the sign of the
// 32-bit difference. Two numbers exactly 2^31 apart are Before each other both
// ways and After neither: windows stay far below that.

// PSN numbers the segments of one direction of a TRP connection.
type PSN uint32

func (p PSN) Add(n uint32) PSN  { return p + PSN(n) }
func (p PSN) Sub(q PSN) int32   { return int32(p - q) }
func (p PSN) Before(q PSN) bool { return int32(p-q) < 0 }
func (p PSN) After(q PSN) bool  { return int32(p-q) > 0 }

// MSN numbers the messages of one untagged DDP queue, from 1 (RFC 5041
// section 4.3).
type MSN uint32

func (m MSN) Add(n uint32) MSN { return m + MSN(n) }

// STag names a memory region to the peer (RFC 5040 section 2).
type STag uint32

// QPN is a queue pair number as verbs show it: 24 bits.
type QPN uint32
