package qp

import (
	"slices"

	"urdma/reason"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Domain is an XRC domain (ibv_open_xrcd(3)): numbered shared receive queues, and target queue
// pairs of type XRC_RECV through which peers reach all of these queues. Several clients may share
// a domain. The worker owns it.
type Domain struct {
	queues     map[uint32]*RecvQueue
	protection map[uint64]*protection // by PD number
	targets    map[*QP]struct{}
	broken     broken
}

// protection is a protection domain of shared receive queues in an XRC domain.
type protection struct {
	client *Client
	queues int // number of those queues
}

// NewDomain returns an empty XRC domain.
func NewDomain() *Domain {
	return &Domain{queues: map[uint32]*RecvQueue{}, protection: map[uint64]*protection{}, targets: map[*QP]struct{}{}}
}

// Named is the additional state of a shared receive queue in an XRC domain: peers address it by
// number, and all its receives complete on one queue.
type Named struct {
	Domain *Domain
	CQ     *CQ
	Client *Client
	Number uint32
}

// AddQueue adds a shared receive queue to its XRC domain and gives it a number.
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

// RemoveQueue removes a shared receive queue from its XRC domain. A target queue pair that is
// receiving a message for the queue fails, and deferred completions of the queue are dropped.
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
			t.markBroken(&q.broken, reason.Memory)
		}
	}
	n.CQ.users--
	count(n.CQ.domains, n.Domain, -1)
	count(n.Client.domains, n.Domain, -1)
}

// count adds by to the count of what, and removes zero counts from the map.
func count[K comparable](of map[K]int, what K, by int) map[K]int {
	if of == nil {
		of = map[K]int{}
	}
	if of[what] += by; of[what] == 0 {
		delete(of, what)
	}
	return of
}

// Target is a reference to a target queue pair. Its holder gets the queue pair's events.
type Target struct {
	Async  *events.Socket
	Handle uint32
	UID    int // user ID of the client
}

// Targets are the references to one target queue pair.
type Targets []*Target

// Add adds a reference.
func (l *Targets) Add(r *Target) { *l = append(*l, r) }

// Remove removes a reference, and reports whether it was the last.
func (l *Targets) Remove(r *Target) (last bool) {
	*l = slices.DeleteFunc(*l, func(x *Target) bool { return x == r })
	return len(*l) == 0
}

// Target returns the target queue pair of domain d with number qpn, or nil.
func (t *Table) Target(d *Domain, qpn uint32) *QP {
	if q := t.pairs[qpn]; q != nil && q.Domain == d {
		return q
	}
	return nil
}

// remotePD returns the protection domain for the peer's access to a region. A peer of a target
// queue pair may access the protection domains of all queues of the XRC domain, because our wire
// protocol names no queue in a Write or Read.
func (q *QP) remotePD(r *mem.Region) uint64 {
	if q.Domain != nil && r != nil && q.Domain.protection[r.PD] != nil {
		return r.PD
	}
	return q.PD
}

// Owner returns the client that owns region r, which the queue pair or its peer may access.
func (q *QP) Owner(r *mem.Region) *Client {
	if q.Domain != nil && r != nil {
		if p := q.Domain.protection[r.PD]; p != nil {
			return p.client
		}
	}
	return q.Client
}

// owner returns the client whose receives q takes from the queue.
func (r *RecvQueue) owner(q *QP) *Client {
	if q.Domain != nil {
		return r.shared.Client
	}
	return q.Client
}

// namesQueue reports whether XRC allows the queue pair to send an operation: an XRC_SEND queue
// pair can send only to an XRC target.
func (q *QP) namesQueue(op *abi.Operation) bool {
	return q.Type != abi.QPTypeXRCSend || op.RDMAP == abi.NoRDMAP || q.SQ.accepts&XRC != 0
}
