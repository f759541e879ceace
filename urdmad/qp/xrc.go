package qp

import (
	"slices"

	"urdma/urdmad/events"
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// Domain is an XRC domain (ibv_open_xrcd(3)): shared receive queues with numbers,
// and target queue pairs, of type XRC_RECV, by which peers reach them all. Several
// clients may share one. The worker owns it.
type Domain struct {
	queues     map[uint32]*RecvQueue
	protection map[uint64]int // protection domains of the queues, and how many each has
	targets    int
}

// NewDomain returns an XRC domain with nothing in it.
func NewDomain() *Domain {
	return &Domain{queues: map[uint32]*RecvQueue{}, protection: map[uint64]int{}}
}

// Named is what a shared receive queue of an XRC domain has besides: peers name it
// by number, and all that it receives completes on one queue.
type Named struct {
	Domain *Domain
	CQ     *CQ
	Client *Client
	Number uint32
}

// AddQueue gives a shared receive queue of an XRC domain its number.
func (t *Table) AddQueue(r *RecvQueue) {
	n := &r.shared.Named
	for n.Number == 0 || n.Domain.queues[n.Number] != nil {
		n.Number = t.rand.Uint32N(1<<24-1) + 1
	}
	n.Domain.queues[n.Number] = r
	n.Domain.protection[r.shared.PD]++
	n.CQ.users++
}

// RemoveQueue forgets it. A target queue pair that is in the middle of a message
// for it fails, and what it received and did not complete yet is not completed.
func (t *Table) RemoveQueue(r *RecvQueue) {
	n := &r.shared.Named
	delete(n.Domain.queues, n.Number)
	if n.Domain.protection[r.shared.PD]--; n.Domain.protection[r.shared.PD] == 0 {
		delete(n.Domain.protection, r.shared.PD)
	}
	for _, q := range t.pairs {
		if q.Domain != n.Domain {
			continue
		}
		q.Client.unwritten -= perWait * q.jobs.forget(n.CQ)
		if q.Recv.active && q.Recv.from == r {
			q.Recv.drop()
			q.Fail(EventFatal)
		}
	}
	n.CQ.users--
}

// forget drops completions that were to come on a queue, and returns how many.
func (j *jobs) forget(c *CQ) (dropped int) {
	before := len(j.deferred)
	kept := j.deferred[:0]
	for _, d := range j.deferred {
		if d.cq != c {
			kept = append(kept, d)
		}
	}
	j.deferred = kept
	return before - len(kept)
}

// InUse reports whether something of the domain's is left.
func (d *Domain) InUse() bool { return len(d.queues) > 0 || d.targets > 0 }

// has reports whether a queue of the domain's fits.
func (d *Domain) has(fits func(*Named) bool) bool {
	if d == nil {
		return false
	}
	for _, r := range d.queues {
		if fits(&r.shared.Named) {
			return true
		}
	}
	return false
}

// Begin begins the receive work request for a message. srqn is the shared receive
// queue that it names, which counts for a target queue pair.
func (r *Receive) Begin(srqn uint32) Taken {
	switch r.q.Type {
	case abi.QPTypeXRCSend:
		return NoQueue // it takes no messages
	case abi.QPTypeXRCRecv:
		from := r.q.Domain.queues[srqn]
		if from == nil {
			return NoQueue
		}
		return r.TakeFrom(from)
	}
	return r.Take()
}

// completesOn is where the current receive completes.
func (r *Receive) completesOn() *CQ {
	if s := r.from.shared; s != nil && s.CQ != nil {
		return s.CQ
	}
	return r.q.RecvCQ
}

// Target is a reference to a target queue pair: who is told its events.
type Target struct {
	Async  *events.Socket
	Handle uint32
}

// Targets are the references to one target queue pair.
type Targets []*Target

// Add adds a reference.
func (l *Targets) Add(r *Target) { *l = append(*l, r) }

// Remove takes one away, and reports whether it was the last.
func (l *Targets) Remove(r *Target) (last bool) {
	*l = slices.DeleteFunc(*l, func(x *Target) bool { return x == r })
	return len(*l) == 0
}

// Target finds the target queue pair of a domain by its number; nil for none.
func (t *Table) Target(d *Domain, qpn uint32) *QP {
	if q := t.pairs[qpn]; q != nil && q.Domain == d {
		return q
	}
	return nil
}

// remotePD is the protection domain in which the peer reaches a region. By a target
// queue pair it reaches those of all the queues of its XRC domain: a Write or Read
// names no queue on our wire.
func remotePD(q *QP, r *mem.Region) uint64 {
	if q.Domain != nil && r != nil && q.Domain.protection[r.PD] > 0 {
		return r.PD
	}
	return q.PD
}

// namesQueue reports whether a queue pair may send an operation as far as XRC goes:
// what one of type XRC_SEND sends is for a target, and nothing else takes it.
func namesQueue(q *QP, op *abi.Operation) bool {
	return q.Type != abi.QPTypeXRCSend || op.RDMAP == abi.NoRDMAP || q.SQ.takes&XRC != 0
}
