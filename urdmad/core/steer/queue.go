package steer

import (
	"sync/atomic"

	"urdma/dpdk/port"
)

// burst is how many packets are passed to the port at once: as many as leave in one send.
const burst = port.BatchPackets

// queue is a worker's queue. It wraps a queue of the port; if the port has only one, only worker 0's does.
type queue struct {
	p      *Port
	self   int
	below  port.Queue // or nil
	spare  []uint32   // slots of our ring to the network that were returned unsent
	wakes  []bool     // workers to be woken, by number
	turn   int        // number of calls of Rx
	more   bool       // the last Rx got as many packets as it requested from the port
	before int        // packets that the port has delivered since its queue was empty; see backlog
	handed []int      // by worker: number of packets in its ring at the start of Rx
	others [burst]port.Packet
	next   [burst]port.Packet // packets to be sent by the port
	ready  int                // packets at the start of next that the port could not take

	made []byte // buffer for as

	received, handedOn atomic.Uint64 // see Counts
}

// A Ref of ours identifies a slot, by the worker that wrote it, or a slot of our ring to the network. Refs of drivers
// never have the first bit set, which no address of a process has either.
const (
	refOurs = 1 << 62
	refOut  = refOurs | 1<<61
	refFrom = 32 // shift of the writer's number
)

func newQueue(p *Port, self int) *queue {
	q := &queue{p: p, self: self, wakes: make([]bool, p.hub.workers), handed: make([]int, p.hub.workers)}
	if self == 0 || p.own {
		q.below = p.under.Queue(self)
	}
	return q
}

// backlog is more packets than were in a port's queue at one time: if the queue is never empty, communication
// management that another worker has handed over waits for so many.
const backlog = 8 * slots

// Rx implements port.Queue. A packet in a ring arrived after packets that were in our own queue by then, so
// the port is read first. If the port has more packets than requested, the rings are still read, up to a message of
// communication management: it may end a connection, and must not overtake what was sent on it.
func (q *queue) Rx(p []port.Packet) (n int) {
	q.turn++
	for from, to := range q.p.rings {
		if r := to[q.self]; r != nil {
			q.handed[from] = r.full.len()
		}
	}
	ringsFirst := q.more
	if q.more = false; q.below != nil {
		q.forward()
		if !ringsFirst {
			n = q.receive(p)
		}
	}
	all := q.below == nil || q.before == 0 || q.before >= backlog
	for i := range q.p.hub.workers {
		from := (q.turn + i) % q.p.hub.workers
		n += q.read(from, p[n:min(len(p), n+q.handed[from])], all)
	}
	if all {
		q.before = 0
	}
	if q.below != nil && ringsFirst {
		n += q.receive(p[n:])
		q.more = false
	}
	return n
}

// read takes packets that another worker has written: all, or those before a message of communication management.
func (q *queue) read(from int, p []port.Packet, all bool) (n int) {
	r := q.p.rings[from][q.self]
	for r != nil && n < len(p) {
		i, ok := r.full.first()
		if !ok || !all && q.p.manages(r.slots[i].packet()) {
			break
		}
		r.full.take()
		s := &r.slots[i]
		p[n] = port.Packet{Data: s.packet(), Flags: s.flags, Class: s.class, Peer: s.peer,
			Ref: refOurs | uintptr(from)<<refFrom | uintptr(i)}
		n++
	}
	return n
}

// receive takes packets from the port, and passes on those for other workers.
func (q *queue) receive(p []port.Packet) (mine int) {
	got := q.below.Rx(p[:min(len(p), burst)])
	q.more = got == min(len(p), burst)
	if q.before += got; !q.more {
		q.before = 0
	}
	theirs := 0
	for i := range p[:got] {
		if q.hand(&p[i]) {
			p[mine] = p[i]
			mine++
		} else {
			q.others[theirs] = p[i]
			theirs++
		}
	}
	if got > 0 {
		q.received.Add(uint64(got))
	}
	if theirs > 0 {
		q.handedOn.Add(uint64(theirs))
		q.below.Free(q.others[:theirs])
		q.wakeOthers()
	}
	return mine
}

// hand copies a packet for other workers to their rings, and reports whether it is for this worker.
func (q *queue) hand(v *port.Packet) (mine bool) {
	if v.Group != 0 { // each worker has its own socket for its groups
		return true
	}
	to := q.p.worker(v.Data)
	if to == everyone {
		q.give(q.p, everyone, v, v.Flags|port.RxAgain)
		return true
	}
	if to != q.self {
		q.give(q.p, to, v, v.Flags)
	}
	return to == q.self
}

// give copies a packet into the ring that leads to worker number to, or into the rings to all other workers if to
// is everyone. at is the port that the packet belongs to.
func (q *queue) give(at *Port, to int, v *port.Packet, flags port.Flags) {
	for w, r := range at.rings[q.self] {
		if r != nil && (to == w || to == everyone) && r.write(v, flags) {
			q.wakes[w] = true
		}
	}
}

func (q *queue) wakeOthers() {
	for w, wanted := range q.wakes {
		if wanted {
			q.wakes[w] = false
			q.p.hub.wake(w)
		}
	}
}

// forward sends the packets that the workers have written to their rings to the network, as far as the port
// has room.
func (q *queue) forward() {
	if q.p.own {
		return
	}
	sent := false
	for from := range q.p.out {
		for q.fill(q.p.out[from]) {
			taken := q.below.Tx(q.next[:q.ready])
			sent = sent || taken > 0
			copy(q.next[:], q.next[taken:q.ready])
			if q.ready -= taken; q.ready > 0 {
				break
			}
		}
	}
	if sent || q.ready > 0 {
		q.below.Flush()
	}
}

// fill appends a burst of a ring's packets to those that wait for the port, and reports whether any packet
// waits.
func (q *queue) fill(r *ring) bool {
	if q.ready == 0 {
		q.ready = q.below.Alloc(q.next[:min(burst, r.full.len())])
		for k := range q.next[:q.ready] {
			i, _ := r.full.take()
			s, v := &r.slots[i], &q.next[k]
			v.Data = v.Data[:copy(v.Data[:s.n], s.data[:s.n])]
			v.Flags, v.Class, v.Peer = s.flags, s.class, s.peer
			r.free.put(i)
		}
	}
	return q.ready > 0
}

// Alloc implements port.Queue.
func (q *queue) Alloc(p []port.Packet) (n int) {
	if q.p.own {
		return q.below.Alloc(p)
	}
	r := q.p.out[q.self]
	for ; n < len(p); n++ {
		i, ok := q.slot(r)
		if !ok {
			break
		}
		p[n] = port.Packet{Data: r.slots[i].data, Ref: refOut | uintptr(i)}
	}
	return n
}

func (q *queue) slot(r *ring) (i uint32, ok bool) {
	if last := len(q.spare) - 1; last >= 0 {
		i = q.spare[last]
		q.spare = q.spare[:last]
		return i, true
	}
	return r.free.take()
}

// Tx implements port.Queue. A ring has room for all its slots, so it takes all packets.
func (q *queue) Tx(p []port.Packet) int {
	if q.p.own {
		return q.transmit(p)
	}
	r := q.p.out[q.self]
	for k := range p {
		v, i := &p[k], uint32(p[k].Ref)
		if !q.tell(v) {
			q.spare = append(q.spare, i)
			continue
		}
		s := &r.slots[i]
		s.n, s.flags, s.class, s.peer = len(v.Data), v.Flags, v.Class, v.Peer
		r.full.put(i)
		q.wakes[0] = q.self != 0
	}
	return len(p)
}

// tell gives a packet that we send to the workers of this urdmad that receive it, and reports whether it
// also leaves through the port.
func (q *queue) tell(v *port.Packet) (leaves bool) {
	if v.Flags.Has(port.TxOut) {
		return true
	}
	dev, all, leaves := q.p.inside(v)
	switch {
	case dev >= 0:
		at := q.p.hub.ports[dev]
		if w, ok := q.as(at, *v); ok {
			q.give(at, at.worker(w.Data), &w, port.RxIPv4Good|port.RxUDPGood|port.RxInside)
		}
	case all:
		q.give(q.p, everyone, v, port.RxIPv4Good|port.RxUDPGood|port.RxInside)
	}
	return leaves
}

// transmit sends through our own queue of the port, which takes as many packets as it has room for. (A
// message to a group for which it has no room is given to the other workers twice.)
func (q *queue) transmit(p []port.Packet) int {
	from := 0 // earlier packets have been sent, or don't leave through the port
	for k := range p {
		if q.tell(&p[k]) {
			continue
		}
		if from += q.below.Tx(p[from:k]); from < k {
			return from
		}
		q.below.Free(p[k : k+1])
		from++
	}
	return from + q.below.Tx(p[from:])
}

// Flush implements port.Queue.
func (q *queue) Flush() {
	switch {
	case q.p.own:
		q.below.Flush()
	case q.below != nil:
		q.forward()
	}
	q.wakeOthers()
}

// Free implements port.Queue. The port's own packets are returned many at a time.
func (q *queue) Free(p []port.Packet) {
	for i := 0; i < len(p); i++ {
		first := i
		for i < len(p) && p[i].Ref < refOurs {
			i++
		}
		if i > first {
			q.below.Free(p[first:i])
		}
		if i == len(p) {
			break
		}
		switch v := &p[i]; {
		case v.Ref >= refOut:
			q.spare = append(q.spare, uint32(v.Ref))
		default:
			from, slot := (v.Ref-refOurs)>>refFrom, uint32(v.Ref)
			q.p.rings[from][q.self].free.put(slot)
		}
	}
}

// ArmRx implements port.Queue. A worker that writes to a ring wakes its reader.
func (q *queue) ArmRx() (fd int, armed bool) {
	for from := range q.p.rings {
		if r := q.p.rings[from][q.self]; r != nil && r.full.len() > 0 {
			return -1, false
		}
	}
	if q.below == nil {
		return port.Woken, true
	}
	for _, r := range q.p.out {
		if r.full.len() > 0 {
			return -1, q.ready > 0 // the port is full, and sends no event when it has room again
		}
	}
	if !q.p.info.Wire {
		return port.Woken, true
	}
	return q.below.ArmRx()
}

// DisarmRx implements port.Queue.
func (q *queue) DisarmRx() {
	if q.below != nil && q.p.info.Wire {
		q.below.DisarmRx()
	}
}
