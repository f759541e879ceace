package datagram

import (
	"cmp"
	"net/netip"
	"slices"
	"syscall"

	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// This file implements multicast groups: a message to a group goes to each attached queue pair except its
// sender.

// MaxGroups is the greatest number of groups that a queue pair can be attached to.
const MaxGroups = 64

// membership is a group at a port.
type membership struct {
	dev   int
	group netip.Addr
}

// groupOf returns the group of an address at a port (docs/WIRE.md chapter 10): on a port with IPv4 packets,
// the group of a GID.
func (p *Port) groupOf(group netip.Addr) netip.Addr {
	if group.Is4() || p.If.IP().Is6() {
		return group
	}
	raw := group.As16()
	low := [4]byte(raw[12:])
	if raw[10] != 0xff || raw[11] != 0xff || !netip.AddrFrom4(low).IsMulticast() {
		low[0] = 239
	}
	return netip.AddrFrom4(low)
}

// group is the members of a group at a port.
type group struct {
	members []member // in the order of attachment
	live    int
	last    uint64 // number of the newest member
}

// member is a queue pair that was attached to a group. Members are numbered, so that a partly delivered
// message continues correctly while members are attached and detached.
type member struct {
	q      *qp.QP // nil: it was detached
	number uint64
}

// attachment is the attachment of a queue pair to a group.
type attachment struct {
	membership
	number uint64 // the member's number
}

func (g *group) add(q *qp.QP) (number uint64) {
	g.last++
	g.live++
	g.members = append(g.members, member{q, g.last})
	return g.last
}

func (g *group) remove(number uint64) {
	g.members[g.from(number)].q = nil
	if g.live--; 2*g.live < len(g.members) {
		g.members = slices.DeleteFunc(g.members, func(m member) bool { return m.q == nil })
	}
}

// from returns the index of the first member with this number or a later one.
func (g *group) from(number uint64) int {
	i, _ := slices.BinarySearchFunc(g.members, number, func(m member, n uint64) int { return cmp.Compare(m.number, n) })
	return i
}

// Attach makes a queue pair receive messages to a group (ibv_attach_mcast(3)).
func (s *Stack) Attach(q *qp.QP, dev int, to netip.Addr) error {
	if !to.IsMulticast() {
		return syscall.EINVAL
	}
	to = s.ports[dev].groupOf(to)
	key := membership{dev, to}
	switch {
	case to.Is4() != s.ports[dev].If.IP().Is4():
		return syscall.EINVAL
	case s.attachedTo(q, key) >= 0:
		return nil
	case len(s.attached[q]) >= MaxGroups:
		return syscall.ENOMEM
	}
	if err := s.ports[dev].If.Join(to); err != nil {
		return err
	}
	g := s.groups[key]
	if g == nil {
		g = &group{}
		s.groups[key] = g
	}
	s.attached[q] = append(s.attached[q], attachment{key, g.add(q)})
	return nil
}

// attachedTo returns the index among a queue pair's attachments; negative: there is none.
func (s *Stack) attachedTo(q *qp.QP, key membership) int {
	return slices.IndexFunc(s.attached[q], func(a attachment) bool { return a.membership == key })
}

// Detach undoes Attach; EINVAL if the queue pair is not attached.
func (s *Stack) Detach(q *qp.QP, dev int, from netip.Addr) error {
	from = s.ports[dev].groupOf(from)
	key := membership{dev, from}
	at := s.attachedTo(q, key)
	if at < 0 {
		return syscall.EINVAL
	}
	own, g := s.attached[q], s.groups[key]
	if g.remove(own[at].number); g.live == 0 {
		delete(s.groups, key)
	}
	if len(own) == 1 {
		delete(s.attached, q)
	} else {
		s.attached[q] = slices.Delete(own, at, at+1)
	}
	s.ports[dev].If.Leave(from)
	return nil
}

// Attached returns how many groups a queue pair is attached to.
func (s *Stack) Attached(q *qp.QP) int { return len(s.attached[q]) }

// Forget detaches a queue pair from every group.
func (s *Stack) Forget(q *qp.QP) {
	for _, a := range slices.Clone(s.attached[q]) {
		_ = s.Detach(q, a.dev, a.group) // it is attached
	}
}

// The cost of a message to a group grows with the number of members, of which there may be thousands.
const (
	// groupBudget bounds the cost of messages to groups in a turn, in the units of package qp, for each
	// queue pair that sends and for all messages from the network.
	groupBudget = 1 << 20
	// memberCost is the cost of a member that does not take the message.
	memberCost = 512
	// maxCrowd bounds, in bytes, the messages from the network that wait for delivery to members.
	maxCrowd = 4 << 20
)

// serveMembers delivers a message to the members of a group at a port, from number from on, within the
// budget that began when the table's Spent was begun. It returns the number of the next member, 0 if all
// were served, and how many took the message.
func (s *Stack) serveMembers(p *Port, to netip.Addr, a *arrival, from uint64, begun int,
	give func(to *Pair)) (next uint64, taken int) {
	g := s.groups[membership{p.If.Dev, to}]
	if g == nil {
		return 0, 0
	}
	for _, m := range g.members[g.from(from):] {
		if s.table.Spent()-begun >= groupBudget {
			return m.number, taken
		}
		s.table.Spend(memberCost)
		if m.q == nil {
			continue
		}
		to := s.pairs[wire.QPN(m.q.QPN)]
		if to == nil || to.port != p || a.from == to || a.from != nil && !a.from.live() || !to.member(a) {
			continue
		}
		taken++
		give(to)
	}
	return 0, taken
}

// unserved is the progress of a work request's message to a group.
type unserved struct {
	index uint32
	next  uint64 // number of the next member; 0: no such message
}

// sendGroup sends a message to a group: through the port if the group is reachable there, and to the
// members at the port, which may take several turns.
func (p *Pair) sendGroup(to netip.Addr, i uint32, wr *qp.SendWR, h *Message) outcome {
	from := p.unserved
	p.unserved = unserved{}
	if from.index != i || from.next == 0 {
		from.next = 0
		if _, out := p.port.If.GroupLink(to); out {
			if sent := p.sendWire(to, i, wr, h); sent != gone {
				return sent
			}
		}
	}
	if p.QP.SourceDead(i) {
		return revoked
	}
	a := arrival{Message: *h, src: p.port.If.IP(), dst: to, class: p.class(wr), length: int(wr.Length), from: p}
	next, _ := p.s.serveMembers(p.port, to, &a, from.next, p.begun, func(to *Pair) { p.copyTo(to, i, wr, &a) })
	if next != 0 && p.live() {
		p.unserved = unserved{i, next}
		p.s.table.Ready(p.QP)
		return begun
	}
	return gone
}

// crowd has the messages from the network that could not be delivered to all members of their groups yet.
type crowd struct {
	waiting []crowded
	bytes   int
	spent   int // by messages from the network, in this turn
}

type crowded struct {
	port *Port
	a    arrival
	data []byte
	next uint64 // number of the next member
}

// Serve continues, at the start of a turn, the delivery of messages from the network to groups, and returns
// how many members took one.
func (s *Stack) Serve() (n int) {
	c := &s.crowd
	c.spent = 0
	for len(c.waiting) > 0 && c.spent < groupBudget {
		m := &c.waiting[0]
		taken := 0
		m.next, taken = s.serveArrived(m.port, &m.a, m.data, m.next)
		n += taken + 1
		if m.next != 0 {
			break
		}
		c.bytes -= len(m.data) + memberCost
		c.waiting[0] = crowded{}
		c.waiting = c.waiting[1:]
	}
	return n
}

// serveArrived is serveMembers for a message from the network.
func (s *Stack) serveArrived(p *Port, a *arrival, data []byte, from uint64) (next uint64, taken int) {
	begun := s.table.Spent()
	next, taken = s.serveMembers(p, a.dst, a, from, begun-s.crowd.spent, func(to *Pair) {
		if to.place(data).Is == qp.Done {
			to.end(a)
		}
	})
	s.crowd.spent += s.table.Spent() - begun
	return next, taken
}

// arrivedGroup delivers a message from the network to the members of its group; false if it drops it.
func (s *Stack) arrivedGroup(p *Port, a *arrival, data []byte) bool {
	c := &s.crowd
	next, taken := uint64(1), 0
	if len(c.waiting) == 0 {
		if next, taken = s.serveArrived(p, a, data, 0); next == 0 && taken == 0 {
			return false
		}
	}
	if next == 0 {
		return true
	}
	if c.bytes+len(data)+memberCost > maxCrowd {
		s.Stats.GroupWait++
		return false
	}
	c.bytes += len(data) + memberCost
	c.waiting = append(c.waiting, crowded{p, *a, append([]byte(nil), data...), next})
	return true
}

// member takes a receive for a message to a group.
func (p *Pair) member(a *arrival) bool {
	if p.QP.Attr.QKey != a.QKey {
		p.s.Stats.WrongQKey++
		return false
	}
	v := p.begin(a)
	if v.Is != qp.Done {
		p.dropped(v)
	}
	return v.Is == qp.Done
}
