package datagram

import (
	"net/netip"
	"slices"
	"syscall"

	"urdma/urdmad/qp"
	"urdma/wire"
)

// This file has groups: what is sent to one goes to each queue pair that was
// attached to it, but the one that sent it.

// MaxGroups is how many groups a queue pair can be attached to.
const MaxGroups = 64

// membership is a group on a port.
type membership struct {
	dev   int
	group netip.Addr
}

// groupOf is the group that an address stands for on a port (docs/WIRE.md chapter
// 10): where packets are IPv4's, that of a GID.
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

// Attach has a queue pair receive what is sent to a group (ibv_attach_mcast(3)).
func (s *Stack) Attach(q *qp.QP, dev int, group netip.Addr) error {
	if !group.IsMulticast() {
		return syscall.EINVAL
	}
	group = s.ports[dev].groupOf(group)
	key := membership{dev, group}
	switch {
	case group.Is4() != s.ports[dev].If.IP().Is4():
		return syscall.EINVAL
	case slices.Contains(s.groups[key], q):
		return nil
	case len(s.attached[q]) >= MaxGroups:
		return syscall.ENOMEM
	}
	s.groups[key] = append(s.groups[key], q)
	s.attached[q] = append(s.attached[q], key)
	s.ports[dev].If.Join(group)
	return nil
}

// Detach undoes Attach; EINVAL if it was not called.
func (s *Stack) Detach(q *qp.QP, dev int, group netip.Addr) error {
	group = s.ports[dev].groupOf(group)
	key := membership{dev, group}
	i := slices.Index(s.groups[key], q)
	if i < 0 {
		return syscall.EINVAL
	}
	if s.groups[key] = slices.Delete(s.groups[key], i, i+1); len(s.groups[key]) == 0 {
		delete(s.groups, key)
	}
	own := s.attached[q]
	if at := slices.Index(own, key); len(own) == 1 {
		delete(s.attached, q)
	} else {
		s.attached[q] = slices.Delete(own, at, at+1)
	}
	s.ports[dev].If.Leave(group)
	return nil
}

// Attached is how many groups a queue pair is attached to.
func (s *Stack) Attached(q *qp.QP) int { return len(s.attached[q]) }

// Forget detaches a queue pair from every group.
func (s *Stack) Forget(q *qp.QP) {
	for _, key := range slices.Clone(s.attached[q]) {
		_ = s.Detach(q, key.dev, key.group) // it is attached
	}
}

// sendGroup sends a message to a group: out of the port, if that reaches anybody,
// and to the members on it.
func (p *Pair) sendGroup(group netip.Addr, i uint32, wr *qp.SendWR, h *wire.Datagram) outcome {
	group = p.port.groupOf(group)
	h.Dst = wire.MulticastQPN
	_, out := p.port.If.GroupLink(group)
	if out {
		if sent := p.sendWire(group, i, wr, h); sent != gone {
			return sent
		}
	}
	if p.QP.SourceDead(i) {
		return revoked
	}
	if !out {
		p.show(nil, group, i, h, "")
	}
	a := arrival{h: h, src: p.port.If.IP(), dst: group, length: int(wr.Length)}
	for _, q := range p.s.groups[membership{p.Dev, group}] {
		to := p.s.pairs[wire.QPN(q.QPN)]
		if !p.live() || to == nil || to == p || to.port != p.port || !to.member(&a) {
			continue
		}
		p.copyTo(to, i, wr, &a)
	}
	return gone
}

// arrivedGroup gives a message that came from the wire to the members of its group.
func (s *Stack) arrivedGroup(p *Port, group netip.Addr, a *arrival, data []byte) (why string) {
	taken := 0
	for _, q := range s.groups[membership{p.If.Dev, group}] {
		to := s.pairs[wire.QPN(q.QPN)]
		if to == nil || to.port != p || !to.member(a) {
			continue
		}
		if !to.QP.Recv.Scatter(data) {
			to.breakReceive()
			continue
		}
		to.end(a)
		taken++
	}
	if taken == 0 {
		return "no member of the group takes it"
	}
	return ""
}

// member takes a receive for a message to a group.
func (p *Pair) member(a *arrival) bool {
	if p.QP.Attr.QKey != a.h.QKey {
		p.s.Stats.WrongQKey++
		return false
	}
	switch p.begin(a) {
	case begun:
		return true
	case noReceive:
		p.s.Stats.NoReceive++
	}
	return false
}
