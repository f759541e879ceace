package steer

import (
	"sync/atomic"

	"urdma/dpdk/port"
)

// slots is the number of packets in a ring, a power of two.
const slots = 512

// ring carries packets from one worker to another. The writer takes slots from free, fills them and puts
// them into full. The reader takes them from full, and returns them to free, in any order.
type ring struct {
	slots    [slots]slot
	capacity int // of a slot's first buffer
	full     indices
	free     indices
	dropped  atomic.Uint64
}

type slot struct {
	data  []byte // the whole buffer
	n     int    // length of the packet
	flags port.Flags
	class uint8
	peer  port.Peer
}

func newRing(length, capacity int) *ring {
	r := &ring{capacity: capacity}
	memory := make([]byte, slots*capacity)
	for i := range r.slots {
		r.slots[i].data = memory[i*capacity : i*capacity+length : (i+1)*capacity]
		r.free.put(uint32(i))
	}
	return r
}

// write copies a packet to the ring, or drops and counts it. Another port of this urdmad may have a greater MTU: for
// its packets, slots get larger buffers.
func (r *ring) write(p *port.Packet, flags port.Flags) bool {
	i, ok := uint32(0), false
	if ok = len(p.Data) <= r.capacity || flags.Has(port.RxInside); ok {
		i, ok = r.free.take()
	}
	if !ok {
		r.dropped.Add(1)
		return false
	}
	s := &r.slots[i]
	if len(p.Data) > cap(s.data) {
		s.data = make([]byte, len(p.Data))
	}
	s.n, s.flags, s.class, s.peer = copy(s.data[:cap(s.data)], p.Data), flags, p.Class, p.Peer
	r.full.put(i)
	return true
}

func (s *slot) packet() []byte { return s.data[:s.n:cap(s.data)] }

// indices is a queue of slot numbers with one writer and one reader. It has room for all slots, so it is
// never full. The writer stores head after it stores a number, and the reader loads head before it loads
// the number; for tail it is the other way round.
type indices struct {
	list [slots]uint32
	_    [64]byte // keeps head and tail in different cache lines
	head atomic.Uint32
	_    [60]byte
	tail atomic.Uint32
	_    [60]byte
}

func (q *indices) put(i uint32) {
	head := q.head.Load()
	q.list[head%slots] = i
	q.head.Store(head + 1)
}

func (q *indices) take() (i uint32, ok bool) {
	if i, ok = q.first(); ok {
		q.tail.Store(q.tail.Load() + 1)
	}
	return i, ok
}

// first returns what take would.
func (q *indices) first() (i uint32, ok bool) {
	tail := q.tail.Load()
	if tail == q.head.Load() {
		return 0, false
	}
	return q.list[tail%slots], true
}

func (q *indices) len() int { return int(q.head.Load() - q.tail.Load()) }
