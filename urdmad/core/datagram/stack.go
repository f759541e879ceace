package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Stack has all queue pairs of types UD and UC of one worker.
type Stack struct {
	Stats Stats

	clock *clock.Clock
	table *qp.Table
	ports []*Port
	pairs map[wire.QPN]*Pair // queue pairs of type UD that can receive messages
	ucs   map[wire.QPN]*UC   // queue pairs of type UC that can receive messages

	form Form // the format of ports without another

	groups   map[membership]*group
	attached map[*qp.QP][]attachment
	crowd    crowd
}

// Stats counts events that belong to no queue pair. Unless stated otherwise, a drop is of a received
// message.
type Stats struct {
	Sent          uint64 `counter:"datagrams_sent"`     // to the wire
	Received      uint64 `counter:"datagrams_received"` // from the wire
	Local         uint64 `counter:"datagrams_local"`    // within this urdmad
	Malformed     uint64 `counter:"datagrams_malformed"`
	NoQueuePair   uint64 `counter:"datagrams_no_queue_pair"`
	WrongQKey     uint64 `counter:"datagrams_wrong_qkey"`
	NoReceive     uint64 `counter:"datagrams_no_receive"`
	NoRoom        uint64 `counter:"datagrams_no_room"`        // the receive is too short
	NoRoute       uint64 `counter:"datagrams_no_route"`       // not sent: no route to the address
	NoNeighbour   uint64 `counter:"datagrams_no_neighbour"`   // not sent: the next hop's address was not resolved
	Torn          uint64 `counter:"uc_messages_torn"`         // of type UC: a packet was missing
	Late          uint64 `counter:"uc_packets_late"`          // of type UC: duplicates and overtaken packets
	Refused       uint64 `counter:"uc_messages_refused"`      // of type UC: the peer may not write the memory
	GroupWait     uint64 `counter:"datagrams_group_wait"`     // to groups: too many wait for delivery to members
	NeighbourWait uint64 `counter:"datagrams_neighbour_wait"` // not sent: too many wait for the next hop's address
}

// Port is an interface used for datagrams.
type Port struct {
	If      *netif.Interface
	s       *Stack
	form    Form
	ways    map[netip.Addr]*way
	waiting int // bytes that wait for neighbours
	// asked is the number of address resolutions in progress, including those for forgotten ways.
	asked int
}

// NewStack returns a Stack without ports, whose ports have form f.
func NewStack(t *qp.Table, f Form) *Stack {
	return &Stack{form: f, clock: t.Clock, table: t, pairs: map[wire.QPN]*Pair{}, ucs: map[wire.QPN]*UC{},
		groups: map[membership]*group{}, attached: map[*qp.QP][]attachment{}}
}

// AddPort adds an interface for datagrams. Its device number is the next free one.
func (s *Stack) AddPort(n *netif.Interface) *Port {
	p := &Port{If: n, s: s, form: s.form, ways: map[netip.Addr]*way{}}
	s.ports = append(s.ports, p)
	return p
}

// Stats returns the counters of the port's stack.
func (p *Port) Stats() *Stats { return &p.s.Stats }

// SendsTo reports whether messages were recently sent to an address.
func (p *Port) SendsTo(a netip.Addr) bool { return p.ways[a] != nil }

// Renumbered applies the interface's new address, from which messages are now sent.
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

// PortAt returns the port that has an address, nil if it is not one of ours.
func (s *Stack) PortAt(a netip.Addr) *Port {
	for _, p := range s.ports {
		if p.If.IP() == a {
			return p
		}
	}
	return nil
}

// Modify changes a queue pair of a device as ibv_modify_qp(3) requests; from RTR on it receives messages.
// If it returns an error, nothing has changed.
func (s *Stack) Modify(q *qp.QP, dev int, mask uint32, a *abi.QPAttr) error {
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	if qp.Receives(q.State()) && q.Carrier() == nil {
		s.serve(q, dev)
	}
	return nil
}
