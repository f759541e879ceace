package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Stack is all queue pairs of type UD of one worker.
type Stack struct {
	Stats Stats

	clock *clock.Clock
	table *qp.Table
	ports []*Port
	pairs map[wire.QPN]*Pair // those that messages may arrive at
	ucs   map[wire.QPN]*UC   // likewise, of type UC

	observer Observer // nil while nobody looks
	form     Form     // of ports that have no other, and of what an Observer is shown

	groups   map[membership]*group
	attached map[*qp.QP][]attachment
	crowd    crowd
}

// Stats counts what no queue pair counts. Drops are those of messages that
// arrived, if not said otherwise.
type Stats struct {
	Sent          uint64 `counter:"datagrams_sent"`     // to the wire
	Received      uint64 `counter:"datagrams_received"` // from the wire
	Local         uint64 `counter:"datagrams_local"`    // within this urdmad
	Malformed     uint64 `counter:"datagrams_malformed"`
	NoQueuePair   uint64 `counter:"datagrams_no_queue_pair"`
	WrongQKey     uint64 `counter:"datagrams_wrong_qkey"`
	NoReceive     uint64 `counter:"datagrams_no_receive"`
	NoRoom        uint64 `counter:"datagrams_no_room"`        // the receive is too short
	NoRoute       uint64 `counter:"datagrams_no_route"`       // not sent: the address leads nowhere
	NoNeighbour   uint64 `counter:"datagrams_no_neighbour"`   // not sent: nobody answers for the next hop
	Torn          uint64 `counter:"uc_messages_torn"`         // of queue pairs of type UC: a packet was missing
	Late          uint64 `counter:"uc_packets_late"`          // likewise: duplicates, and packets that later ones have overtaken
	Refused       uint64 `counter:"uc_messages_refused"`      // likewise: memory that the peer may not write
	GroupWait     uint64 `counter:"datagrams_group_wait"`     // to groups: too many wait for their members to be served
	NeighbourWait uint64 `counter:"datagrams_neighbour_wait"` // not sent: too many wait for the next hop's answer
}

// Port is an interface as datagrams use it.
type Port struct {
	If      *netif.Interface
	s       *Stack
	form    Form
	ways    map[netip.Addr]*way
	waiting int // bytes that wait for neighbours
	// asked is how many answers of neighbours are waited for, those included whose
	// way was forgotten meanwhile.
	asked int
}

// NewStack returns a Stack without ports, which are to have a form.
func NewStack(t *qp.Table, f Form) *Stack {
	return &Stack{form: f, clock: t.Clock, table: t, pairs: map[wire.QPN]*Pair{}, ucs: map[wire.QPN]*UC{},
		groups: map[membership]*group{}, attached: map[*qp.QP][]attachment{}}
}

// AddPort has datagrams use an interface, whose device number is the next.
func (s *Stack) AddPort(n *netif.Interface) *Port {
	p := &Port{If: n, s: s, form: s.form, ways: map[netip.Addr]*way{}}
	s.ports = append(s.ports, p)
	return p
}

// Stats are those of the port's stack.
func (p *Port) Stats() *Stats { return &p.s.Stats }

// SendsTo reports whether messages lately went to an address.
func (p *Port) SendsTo(a netip.Addr) bool { return p.ways[a] != nil }

// Renumbered: the interface has another address, from which messages go from now on.
func (p *Port) Renumbered() {
	for dst, w := range p.ways {
		p.forget(dst, w)
	}
	moved := func(local netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(p.If.IP(), local.Port()) }
	for _, q := range p.s.pairs {
		if q.port == p {
			q.Local = moved(q.Local)
		}
	}
	for _, q := range p.s.ucs {
		if q.port == p {
			q.Local = moved(q.Local)
		}
	}
}

// portAt is the port that has an address of ours, or nil.
func (s *Stack) portAt(a netip.Addr) *Port {
	for _, p := range s.ports {
		if p.If.IP() == a {
			return p
		}
	}
	return nil
}

// Modify changes a queue pair of a device as ibv_modify_qp(3) asks; from RTR on
// messages arrive. Nothing has changed when it returns an error.
func (s *Stack) Modify(q *qp.QP, dev int, mask uint32, a *abi.QPAttr) error {
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	if qp.Receives(q.State()) && q.Carrier() == nil {
		s.serve(q, dev)
	}
	return nil
}
