package memif

import "sync/atomic"

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

// clientSide uses the rings as the client: a queue owns all buffers of its share
// and decides which one a slot describes, so frames may be freed and sent in any order.
//
// Invariants: of the four buffers a ring slot, one is for each ring's slot, one to
// be allocated, half a one to be kept, half a one in the caller's hands. Posted
// slots are [rxNext, rxHead), at most the ring's size. What a slot's buffer is, is
// remembered here; the peer's copy in the descriptor is never believed.
type clientSide struct {
	q      *queue
	l      *share
	mem    []byte // region 0
	base   int    // offset of the region's first buffer
	stride int
	first  uint32     // of our buffers
	state  []bufState // of ours
	free   []uint32
	tx     []*clientTx

	rxHead, rxNext  uint16
	rxBuf           []uint32 // by slot
	txOut, txLimit  int      // buffers allocated or in flight, and how many may be
	rxSpare         int      // free buffers that the receive ring should find
	kept, keptLimit int      // buffers of retained packets, and how many may be

	// returned is one more than the newest of our buffers that another queue has found to be
	// sent, 0 for none; next has the one before it, by buffer.
	returned atomic.Uint32
	next     []uint32
}

// clientTx is a ring that we fill. Slots in flight are [tail, head), at most the ring's size, of
// which the peer has been shown those before shown. Whoever fills the ring uses them.
type clientTx struct {
	outRing
	head, tail, shown uint16
	buf               []uint32 // by slot
}

func newClientSide(q *queue, l *share, mem []byte, o *layout, number int, tx []*clientTx) *clientSide {
	slots := 1 << o.log2
	s := &clientSide{
		q: q, l: l, mem: mem, base: o.base, stride: o.stride, first: uint32(number * o.buffers), tx: tx,
		state: make([]bufState, o.buffers), free: make([]uint32, o.buffers), next: make([]uint32, o.buffers),
		rxBuf:   make([]uint32, slots),
		txLimit: 2 * slots, rxSpare: slots / 2, keptLimit: slots / 2,
	}
	for i := range s.free {
		s.free[i] = s.first + uint32(o.buffers-1-i)
	}
	return s
}

// bytes is n bytes of a buffer, with no capacity beyond.
func (s *clientSide) bytes(buf uint32, n int) []byte {
	at := s.base + int(buf)*s.stride
	return s.mem[at : at+n : at+n]
}

// is reports whether a buffer is ours and in a state.
func (s *clientSide) is(buf uint32, in bufState) bool {
	i := buf - s.first // of others' it is too large
	return int(i) < len(s.state) && s.state[i] == in
}

func (s *clientSide) take(to bufState) (buf uint32, ok bool) {
	n := len(s.free)
	if n == 0 {
		return 0, false
	}
	buf = s.free[n-1]
	s.free = s.free[:n-1]
	s.state[buf-s.first] = to
	return buf, true
}

func (s *clientSide) put(buf uint32) {
	s.state[buf-s.first] = bufFree
	s.free = append(s.free, buf)
}

func (s *clientSide) freeRx(buf uint32) bool {
	kept := s.is(buf, bufKept)
	if !kept && !s.is(buf, bufHeld) {
		return false
	}
	if kept {
		s.kept--
	}
	s.put(buf)
	return true
}

func (s *clientSide) freeTx(buf uint32) bool {
	if !s.is(buf, bufAlloc) {
		return false
	}
	s.put(buf)
	s.txOut--
	return true
}

func (s *clientSide) settle() {
	if len(s.free) > 0 && s.l.reads() {
		s.post()
	}
}

func (s *clientSide) keepRx(buf uint32) bool {
	if !s.is(buf, bufHeld) || s.kept == s.keptLimit {
		return false
	}
	s.state[buf-s.first] = bufKept
	s.kept++
	return true
}
