package roce

// AETH is the acknowledgement extension header.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // 24 bits: messages that the responder has carried out
}

// Syndrome is the kind of an acknowledgement with its value: an ACK with credits, an RNR NAK with a timer, or a NAK
// with a code (InfiniBand vol. 1).
type Syndrome uint8

// The kinds, in the upper three bits.
const (
	ACK Syndrome = 0 << 5
	RNR Syndrome = 1 << 5
	NAK Syndrome = 3 << 5

	kindMask = 7 << 5
)

// NoCredits in an ACK means that there is no end-to-end flow control.
const NoCredits Syndrome = ACK | 31

// The codes of a NAK.
const (
	NAKSequence    = NAK     // PSN sequence error
	NAKInvalid     = NAK | 1 // invalid request
	NAKAccess      = NAK | 2 // remote access error
	NAKOperational = NAK | 3 // remote operational error
)

// Kind is ACK, RNR, NAK, or a reserved kind.
func (s Syndrome) Kind() Syndrome { return s & kindMask }

// rnrTimers are in units of 10 microseconds (InfiniBand vol. 1).
var rnrTimers = [32]int64{65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}

// RNRTimer is the wait that an RNR NAK asks for, in nanoseconds.
func (s Syndrome) RNRTimer() int64 { return rnrTimers[s&31] * 10_000 }

// NotReady is the RNR NAK with a timer, in the encoding of ibv_modify_qp(3).
func NotReady(timer uint8) Syndrome { return RNR | Syndrome(timer&31) }
