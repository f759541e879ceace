package qp

import (
	"slices"

	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Domain is an XRC domain (ibv_open_xrcd(3)): shared receive queues with numbers,
// and target queue pairs, of type XRC_RECV, by which peers reach them all. Several
// clients may share one. The worker owns it.
type Domain struct {
	queues     map[uint32]*RecvQueue
	protection map[uint64]*protection // by protection domain
	targets    map[*QP]struct{}
	brokenAt   uint64 // see breaks
}

// protection is a protection domain of queues of an XRC domain.
type protection struct {
	client *Client
	queues int
}

// NewDomain returns an XRC domain with nothing in it.
func NewDomain() *Domain {
	return &Domain{queues: map[uint32]*RecvQueue{}, protection: map[uint64]*protection{}, targets: map[*QP]struct{}{}}
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
	p := n.Domain.protection[r.shared.PD]
	if p == nil {
		p = &protection{client: n.Client}
		n.Domain.protection[r.shared.PD] = p
	}
	p.queues++
	n.CQ.users++
	n.CQ.domains = count(n.CQ.domains, n.Domain, 1)
	n.Client.domains = count(n.Client.domains, n.Domain, 1)
}

// RemoveQueue forgets it. A target queue pair that is in the middle of a message
// for it fails, and what it received and did not complete yet is not completed.
func (t *Table) RemoveQueue(r *RecvQueue) {
	n := &r.shared.Named
	delete(n.Domain.queues, n.Number)
	if p := n.Domain.protection[r.shared.PD]; p.queues == 1 {
		delete(n.Domain.protection, r.shared.PD)
	} else {
		p.queues--
	}
	t.spent += len(n.Domain.targets) * lookCost
	for q := range n.Domain.targets {
		q.jobs.forget(func(d deferredRecv) bool { return d.from == r })
		if q.Recv.active && q.Recv.from == r {
			q.Recv.drop()
			t.markBroken(&q.brokenAt)
		}
	}
	n.CQ.users--
	count(n.CQ.domains, n.Domain, -1)
	count(n.Client.domains, n.Domain, -1)
}

// count changes how many there are of something, of which the map has no zeros.
func count[K comparable](of map[K]int, what K, by int) map[K]int {
	if of == nil {
		of = map[K]int{}
	}
	if of[what] += by; of[what] == 0 {
		delete(of, what)
	}
	return of
}

// Target is a reference to a target queue pair, whose holder is told its events.
type Target struct {
	Async  *events.Socket
	Handle uint32
	UID    int // of the client's user
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
func (q *QP) remotePD(r *mem.Region) uint64 {
	if q.Domain != nil && r != nil && q.Domain.protection[r.PD] != nil {
		return r.PD
	}
	return q.PD
}

// Owner is whose memory a region is that the queue pair or its peer may use.
func (q *QP) Owner(r *mem.Region) *Client {
	if q.Domain != nil && r != nil {
		if p := q.Domain.protection[r.PD]; p != nil {
			return p.client
		}
	}
	return q.Client
}

// owner is the client whose receives q takes from a queue.
func (r *RecvQueue) owner(q *QP) *Client {
	if q.Domain != nil {
		return r.shared.Client
	}
	return q.Client
}

// namesQueue reports whether a queue pair may send an operation as far as XRC goes:
// what one of type XRC_SEND sends is for a target, and nothing else takes it.
func (q *QP) namesQueue(op *abi.Operation) bool {
	return q.Type != abi.QPTypeXRCSend || op.RDMAP == abi.NoRDMAP || q.SQ.accepts&XRC != 0
}
