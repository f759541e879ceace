package memif

// bufState says which side has a buffer of a client's region.
type bufState uint8

const (
	bufFree   bufState = iota
	bufPosted          // in the receive ring, the server may write it
	bufHeld            // received, the caller's
	bufKept            // retained
	bufAlloc           // to send, the caller's
	bufFlight          // in the transmit ring, the server may read it
)

// clientSide uses the rings as the client: it owns all buffers and decides
// which one a slot describes, so frames may be freed and sent in any order.
//
// Invariants: of the four buffers a ring slot, one is for each ring's slot, one to
// be allocated, half a one to be kept, half a one in the caller's hands. Posted
// slots are [rxNext, rxHead), at most the ring's size; slots
// in flight are [txTail, txHead), at most the ring's size, of which the peer
// has been shown those before txShown. What a slot's buffer is, is remembered
// here; the peer's copy in the descriptor is never believed.
type clientSide struct {
	q      *queue
	l      *link
	mem    []byte // region 0
	base   int    // offset of the first buffer
	stride int
	state  []bufState
	free   []uint32

	rxHead, rxNext          uint16
	rxBuf                   []uint32 // by slot
	txHead, txTail, txShown uint16
	txBuf                   []uint32 // by slot
	txOut, txLimit          int      // buffers allocated or in flight, and how many may be
	rxSpare                 int      // free buffers that the receive ring should find
	kept, keptLimit         int      // buffers of retained packets, and how many may be
}

func newClientSide(q *queue, l *link, mem []byte, base, stride, buffers int) *clientSide {
	slots := int(l.rx.size())
	s := &clientSide{
		q: q, l: l, mem: mem, base: base, stride: stride,
		state: make([]bufState, buffers), free: make([]uint32, buffers),
		rxBuf: make([]uint32, slots), txBuf: make([]uint32, slots),
		txLimit: 2 * slots, rxSpare: slots / 2, keptLimit: slots / 2,
	}
	for i := range s.free {
		s.free[i] = uint32(buffers - 1 - i)
	}
	return s
}

// bytes is n bytes of a buffer, with no capacity beyond.
func (s *clientSide) bytes(buf uint32, n int) []byte {
	at := s.base + int(buf)*s.stride
	return s.mem[at : at+n : at+n]
}

func (s *clientSide) take(to bufState) (buf uint32, ok bool) {
	n := len(s.free)
	if n == 0 {
		return 0, false
	}
	buf = s.free[n-1]
	s.free = s.free[:n-1]
	s.state[buf] = to
	return buf, true
}

func (s *clientSide) put(buf uint32) {
	s.state[buf] = bufFree
	s.free = append(s.free, buf)
}

func (s *clientSide) freeRx(buf uint32) bool {
	if int(buf) >= len(s.state) || s.state[buf] != bufHeld && s.state[buf] != bufKept {
		return false
	}
	if s.state[buf] == bufKept {
		s.kept--
	}
	s.put(buf)
	return true
}

func (s *clientSide) freeTx(buf uint32) bool {
	if int(buf) >= len(s.state) || s.state[buf] != bufAlloc {
		return false
	}
	s.put(buf)
	s.txOut--
	return true
}

func (s *clientSide) settle() {
	if len(s.free) > 0 {
		s.post()
	}
}

func (s *clientSide) keepRx(buf uint32) bool {
	if int(buf) >= len(s.state) || s.state[buf] != bufHeld || s.kept == s.keptLimit {
		return false
	}
	s.state[buf] = bufKept
	s.kept++
	return true
}
