package wire

// Sequence numbers wrap around. They are compared as in RFC 1982, by the sign of the 32-bit difference. Of two
// numbers exactly 2^31 apart each is Before the other and none is After: windows stay far below that.

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

// QPN is a queue pair number of 24 bits, as verbs show it.
type QPN uint32
