package netif

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/neighbour"
	"urdma/wire"
)

// NextHop returns the neighbour to which packets for dst are sent: dst itself on the same link, or the
// gateway. It returns false if there is no route. An IPv6 link-local address and a global one can't reach
// each other: there is no route back (RFC 4291 section 2.5.6).
func (n *Interface) NextHop(dst netip.Addr) (netip.Addr, bool) {
	if n.isInside(dst) {
		return dst, true
	}
	if !n.info.Wire || n.IP().IsUnspecified() || dst.Is4() != n.IP().Is4() ||
		dst.IsLinkLocalUnicast() != n.IP().IsLinkLocalUnicast() && !dst.Is4() {
		return netip.Addr{}, false
	}
	if n.addr.Prefix.Contains(dst) {
		return dst, true
	}
	if n.info.Datagrams {
		return n.IP(), true // the kernel routes
	}
	return n.addr.Gateway, n.addr.Gateway.IsValid()
}

// isInside reports whether packets to dst stay in this urdmad: dst is one of our own addresses, and the port
// carries packets between workers.
func (n *Interface) isInside(dst netip.Addr) bool {
	switch {
	case !n.info.Siblings || dst.Is4() != n.IP().Is4():
		return false
	case dst.Is4():
		return n.own[dst.As4()]
	}
	return n.six.own[dst.As16()]
}

// Resolve calls done with the link to a neighbour.
func (n *Interface) Resolve(hop netip.Addr, done func(l Link, ok bool)) {
	if n.isInside(hop) {
		done(n.Link(), true)
		return
	}
	if n.info.Datagrams {
		done(Link{Port: n.addr.SocketPort}, true)
		return
	}
	h := &n.neighbours
	h.send(h.table.Resolve(int64(n.clock.Now), hop, func(mac wire.MAC, ok bool) { done(Link{MAC: mac}, ok) }))
}

// Neighbours returns the interface's neighbour table.
func (n *Interface) Neighbours() *neighbour.Table { return n.neighbours.table }

// Announce announces the interface to the link: by gratuitous ARP, or for an IPv6 address by joining the
// solicited-node group and probing for a duplicate.
func (n *Interface) Announce() {
	if !n.info.Wire || n.info.Datagrams {
		return
	}
	n.groups.announce()
	n.neighbours.send(n.neighbours.table.Announce(int64(n.clock.Now)))
}

// neighbours has the neighbour table of an interface, and sends its packets.
type neighbours struct {
	n     *Interface
	table *neighbour.Table
	timer *clock.Timer
}

func (h *neighbours) init(n *Interface) {
	h.n, h.timer = n, clock.NewTimer(func() { h.send(h.table.Tick(int64(n.clock.Now))) })
	h.begin()
}

// begin makes the table for our address.
func (h *neighbours) begin() {
	n := h.n
	h.table = neighbour.New(n.info.MAC, n.IP())
	h.table.Changed = h.changed
	h.table.Contested = func(by wire.MAC) {
		if n.Contested != nil {
			n.Contested(by)
		}
	}
}

func (h *neighbours) arp(b []byte) {
	var a wire.ARP
	if _, err := a.Parse(b); err != nil {
		h.n.Drop(Drop(err.Error()))
		return
	}
	h.answer(h.table.ARP(int64(h.n.clock.Now), &a))
}

// discovery handles a neighbour discovery message.
func (h *neighbours) discovery(f *wire.Frame, message []byte) {
	var p wire.NDP
	if err := p.Parse(f, message); err != nil {
		h.n.Drop(Drop(err.Error()))
		return
	}
	h.answer(h.table.NDP(int64(h.n.clock.Now), f, &p))
	if h.table.Duplicate() {
		h.n.lose(f.Src)
	}
}

// CutOff stops all sending by the interface, because another worker's interface has found a host with our
// address.
func (n *Interface) CutOff() {
	if !n.tx.cut {
		n.lose(wire.MAC{})
	}
}

// lose cuts the interface off: the host at by has our address.
func (n *Interface) lose(by wire.MAC) {
	n.tx.cut = true
	if n.Lost != nil {
		n.Lost(by)
	}
}

// answer sends answers to a message from the link, within the bound on answers.
func (h *neighbours) answer(out []neighbour.Outgoing) {
	if len(out) > 0 && !h.n.answered.neighbours.one(h.n.clock.Now) {
		h.n.Drop(DropQuestions)
		out = nil
	}
	h.send(out)
}

// send sends the packets of the neighbour table and sets its timer.
func (h *neighbours) send(out []neighbour.Outgoing) {
	for i := range out {
		o := &out[i]
		b := h.n.Alloc()
		if b == nil {
			break // as if lost: the table repeats the request
		}
		if o.NDP.Type != 0 {
			h.n.commit(o.NDP.Put(b, h.n.info.MAC, o.Dst, o.From, o.To))
			continue
		}
		at := wire.PutEthernet(b, o.Dst, h.n.info.MAC, wire.EtherTypeARP)
		h.n.commit(at + o.ARP.Put(b[at:]))
	}
	h.n.clock.Set(h.timer, clock.Time(h.table.Deadline()))
}

// changed updates the paths through a neighbour to its new address.
func (h *neighbours) changed(ip netip.Addr, mac wire.MAC) {
	for p := range h.n.paths[ip] {
		p.setDst(mac)
	}
}

// confirm verifies that a neighbour is still reachable.
func (h *neighbours) confirm(hop netip.Addr) {
	h.send(h.table.Confirm(int64(h.n.clock.Now), hop))
}
