package impair

import (
	"container/heap"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
)

// own is the Ref of packets that belong to this package. No driver uses the highest number.
const own = ^uintptr(0)

// maxWaiting is the largest number of delayed packets of a direction. Further packets are lost,
// as on a link whose buffer is full.
const maxWaiting = 1 << 16

// Queue is a port.Queue around another.
type Queue struct {
	Stages []*Stage

	under port.Queue
	info  port.Info
	clock *clock.Clock
	timer *clock.Timer
	room  []byte // as large as the port's transmit buffers
	burst []port.Packet
	in    waiting
	out   waiting
	n     uint64 // number of delayed packets so far
	lent  int    // received packets of this package that were not freed
}

// New returns a queue around a port's queue, without stages.
func New(under port.Queue, info port.Info, c *clock.Clock) *Queue {
	q := &Queue{under: under, info: info, clock: c, burst: make([]port.Packet, 32),
		room: make([]byte, info.MTU+port.EtherHeaderLen)}
	var one [1]port.Packet
	if under.Alloc(one[:]) == 1 {
		q.room = make([]byte, len(one[0].Data), cap(one[0].Data))
		under.Free(one[:])
	}
	q.timer = clock.NewTimer(q.due)
	return q
}

// Under returns the port's own queue.
func (q *Queue) Under() port.Queue { return q.under }

// Idle reports whether the queue has no stages and no packets, so that the port's own queue can
// replace it.
func (q *Queue) Idle() bool { return len(q.Stages) == 0 && len(q.in)+len(q.out)+q.lent == 0 }

// Close drops delayed packets.
func (q *Queue) Close() {
	q.in, q.out = nil, nil
	q.clock.Set(q.timer, clock.Never)
}

// Rx implements port.Queue.
func (q *Queue) Rx(p []port.Packet) int {
	n := q.under.Rx(q.burst[:min(len(q.burst), len(p))])
	for i := range q.burst[:n] {
		q.pass(&q.burst[i], false)
	}
	q.under.Free(q.burst[:n])
	n = 0
	for n < len(p) && len(q.in) > 0 && q.in[0].due <= q.clock.Now {
		p[n] = heap.Pop(&q.in).(late).packet
		n++
	}
	q.lent += n
	q.arm()
	return n
}

// pass lets the stages decide about a packet; copies of it wait until they are due.
func (q *Queue) pass(p *port.Packet, out bool) {
	to := &q.in
	if out {
		to = &q.out
	}
	f := fate{due: q.clock.Now, copies: 1}
	for _, s := range q.Stages {
		s.meet(&f, p, &q.info, out, q.clock.Now)
	}
	if len(*to) >= maxWaiting {
		return
	}
	for range f.copies {
		c := *p
		c.Data, c.Ref = append(make([]byte, 0, max(len(p.Data), 64)), p.Data...), own
		if f.corrupt {
			c.Data[corruptAt] ^= 1
			c.Flags &^= port.RxIPv4Good
		}
		q.n++
		heap.Push(to, late{f.due, q.n, c})
	}
}

// arm sets the timer for the next packet that is due.
func (q *Queue) arm() {
	next := clock.Never
	for _, w := range []waiting{q.in, q.out} {
		if len(w) > 0 {
			next = min(next, w[0].due)
		}
	}
	q.clock.Set(q.timer, next)
}

// due sends outgoing packets that are due. Incoming ones are taken by the next Rx, which follows
// at once.
func (q *Queue) due() {
	q.send()
	q.under.Flush()
	if len(q.in) > 0 && q.in[0].due <= q.clock.Now {
		return
	}
	q.arm()
}

// send hands packets that are due to the port, as far as it has room.
func (q *Queue) send() {
	var one [1]port.Packet
	for len(q.out) > 0 && q.out[0].due <= q.clock.Now && q.under.Alloc(one[:]) == 1 {
		p := heap.Pop(&q.out).(late).packet
		b := one[0].Data
		if len(p.Data) > cap(b) {
			q.under.Free(one[:])
			continue
		}
		one[0].Data = b[:copy(b[:len(p.Data)], p.Data)]
		one[0].Flags, one[0].Peer = p.Flags, p.Peer
		if q.under.Tx(one[:]) == 0 {
			q.under.Free(one[:])
			return // the packet is lost, as in a full ring
		}
	}
}

// Free implements port.Queue.
func (q *Queue) Free(p []port.Packet) {
	for i := range p {
		switch p[i].Ref {
		case own:
			q.lent--
		case unsent:
		default:
			q.under.Free(p[i : i+1])
		}
	}
}

// unsent is the Ref of a transmit buffer that belongs to this package.
const unsent = own - 1

// Alloc implements port.Queue.
func (q *Queue) Alloc(p []port.Packet) int {
	for i := range p {
		p[i] = port.Packet{Data: make([]byte, len(q.room), cap(q.room)), Ref: unsent}
	}
	return len(p)
}

// Tx implements port.Queue.
func (q *Queue) Tx(p []port.Packet) int {
	for i := range p {
		q.pass(&p[i], true)
	}
	return len(p)
}

// Flush implements port.Queue.
func (q *Queue) Flush() {
	q.send()
	q.under.Flush()
	q.arm()
}

// ArmRx implements port.Queue.
func (q *Queue) ArmRx() (fd int, armed bool) {
	if len(q.in) > 0 && q.in[0].due <= q.clock.Now {
		return -1, false
	}
	return q.under.ArmRx()
}

// DisarmRx implements port.Queue.
func (q *Queue) DisarmRx() { q.under.DisarmRx() }

// late is a delayed packet, ordered by due, then by n.
type late struct {
	due    clock.Time
	n      uint64
	packet port.Packet
}

type waiting []late

func (w waiting) Len() int { return len(w) }
func (w waiting) Less(i, j int) bool {
	return w[i].due < w[j].due || w[i].due == w[j].due && w[i].n < w[j].n
}
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(v any)   { *w = append(*w, v.(late)) }
func (w *waiting) Pop() any {
	last := len(*w) - 1
	v := (*w)[last]
	(*w)[last] = late{}
	*w = (*w)[:last]
	return v
}
