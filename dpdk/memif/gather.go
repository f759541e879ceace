package memif

import (
	"urdma/dpdk/port"
)

// gathering assembles a frame in a private buffer.
type gathering struct {
	q     *queue
	index uint32
	buf   []byte // nil: no buffer was free
	size  int
}

func newGathering(q *queue) gathering {
	g := gathering{q: q}
	index, b, ok := q.heap.take()
	if !ok {
		q.counters.NoBuffer.Add(1)
		return g
	}
	g.index, g.buf = index, b
	return g
}

// add appends a part. Bytes that do not fit are counted in size but not copied.
func (g *gathering) add(part []byte) {
	if g.size < len(g.buf) {
		copy(g.buf[g.size:], part)
	}
	g.size += len(part)
}

func (g *gathering) abandon() {
	if g.buf != nil {
		g.q.heap.put(g.index)
		g.buf = nil
	}
}

// finish makes the packet. ok is false if there was no buffer or the frame has a bad length; the error is
// counted.
func (g *gathering) finish(pk *port.Packet) (ok bool) {
	if g.buf == nil {
		return false
	}
	if g.size < port.EtherHeaderLen || g.size > len(g.buf) {
		g.q.counters.RxErrors.Add(1)
		g.abandon()
		return false
	}
	*pk = port.Packet{Data: g.buf[:g.size:g.size], Ref: makeRef(0, refHeap, g.index)}
	return true
}
