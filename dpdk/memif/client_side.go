package memif

import "sync/atomic"

// bufState says who owns a buffer of a client's region, and for what.
type bufState uint8

const (
	bufFree   bufState = iota
	bufPosted          // in the receive ring; the server may write it
	bufHeld            // received; owned by the caller
	bufAlloc           // to be sent; owned by the caller
	bufFlight          // in the transmit ring; the server may read it
)

// clientSide uses the rings as the client: a queue owns all buffers of its share and decides which buffer a
// slot refers to, so frames may be freed and sent in any order.
//
// Invariants: there are four buffers for each ring slot: one for the receive ring, two for sending, one
// for packets that the caller has received. Posted slots are
// [rxNext, rxHead), at most the ring's size. The buffer of each slot is stored here; the copy in the
// descriptor, which the peer can write, is never used.
type clientSide struct {
	q      *queue
	l      *share
	mem    []byte // region 0
	base   int    // offset of the first buffer in the region
	stride int
	first  uint32     // number of our first buffer
	state  []bufState // states of our buffers
	free   []uint32
	tx     []*clientTx

	rxHead, rxNext uint16
	rxBuf          []uint32 // buffer of each slot
	txOut, txLimit int      // buffers allocated or being sent; their limit
	rxSpare        int      // free buffers to be left for the receive ring

	// returned is the head of a list of our buffers that other queues have returned after they were sent: the
	// newest buffer's index plus one, or 0. next has the following entry of each buffer.
	returned atomic.Uint32
	next     []uint32
}

// clientTx is a ring for sending. Slots being sent are [tail, head), at most the ring's size; those before
// shown are visible to the peer. Only the queue that fills the ring uses these fields.
type clientTx struct {
	outRing
	head, tail, shown uint16
	buf               []uint32 // buffer of each slot
}

func newClientSide(q *queue, l *share, mem []byte, o *layout, number int, tx []*clientTx) *clientSide {
	slots := 1 << o.log2
	s := &clientSide{
		q: q, l: l, mem: mem, base: o.base, stride: o.stride, first: uint32(number * o.buffers), tx: tx,
		state: make([]bufState, o.buffers), free: make([]uint32, o.buffers), next: make([]uint32, o.buffers),
		rxBuf:   make([]uint32, slots),
		txLimit: 2 * slots, rxSpare: slots / 2,
	}
	for i := range s.free {
		s.free[i] = s.first + uint32(o.buffers-1-i)
	}
	return s
}

// bytes returns n bytes of a buffer, with no further capacity.
func (s *clientSide) bytes(buf uint32, n int) []byte {
	at := s.base + int(buf)*s.stride
	return s.mem[at : at+n : at+n]
}

// is reports whether a buffer is one of ours and in this state.
func (s *clientSide) is(buf uint32, in bufState) bool {
	i := buf - s.first // too large if it belongs to another queue
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
	if !s.is(buf, bufHeld) {
		return false
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
