package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

const (
	// maxWays bounds the addresses whose paths a port keeps.
	maxWays = 4096
	// maxWaiting and maxWaitingAll bound, in bytes, the packets that wait for one neighbour and for all of
	// a port's neighbours.
	maxWaiting    = 256 << 10
	maxWaitingAll = 4 << 20
	// confirmAfter is how long a neighbour's address is used before it is resolved again: no answer from a
	// peer confirms it.
	confirmAfter = 20 * clock.Second
)

// way is the path to one address.
type way struct {
	path    netif.Path
	open    bool     // the next hop's Ethernet address is known
	waiting []packet // packets that wait for that address
	bytes   int      // total length of those packets
	asked   clock.Time
}

// way returns the path to an address, and starts to resolve the address if it is new. It returns nil and
// counts that if there is no route, or if more resolutions are in progress than paths are kept: behind a
// gateway that doesn't answer, each would wait.
func (p *Port) way(dst netip.Addr) *way {
	if w := p.ways[dst]; w != nil {
		if now := p.s.clock.Now; w.open && now-w.asked > confirmAfter {
			w.asked = now
			w.path.Confirm()
		}
		return w
	}
	if dst.IsMulticast() {
		return p.groupWay(dst)
	}
	hop, ok := p.If.NextHop(dst)
	switch {
	case !ok:
		p.s.Stats.NoRoute++
		return nil
	case p.asked >= maxWays:
		p.s.Stats.NeighbourWait++
		return nil
	}
	w := &way{asked: p.s.clock.Now}
	p.remember(dst, w)
	p.asked++
	p.If.Resolve(hop, func(l netif.Link, ok bool) { p.asked--; p.resolved(dst, w, l, ok) })
	if p.ways[dst] != w {
		p.s.Stats.NoRoute++
		return nil // the address was not resolved
	}
	return w
}

// remember keeps a way. If there are too many, a random one is removed.
func (p *Port) remember(dst netip.Addr, w *way) {
	for old, v := range p.ways {
		if len(p.ways) < maxWays {
			break
		}
		p.forget(old, v)
	}
	p.ways[dst] = w
}

func (p *Port) forget(dst netip.Addr, w *way) {
	p.waiting -= w.bytes
	w.waiting, w.bytes = nil, 0
	if w.open {
		w.path.Leave()
	}
	if p.ways[dst] == w {
		delete(p.ways, dst)
	}
}

// resolved sends the waiting packets, or drops them.
func (p *Port) resolved(dst netip.Addr, w *way, l netif.Link, ok bool) {
	if p.ways[dst] != w {
		return // the way was forgotten in the meantime
	}
	if !ok {
		p.s.Stats.NoNeighbour += uint64(len(w.waiting))
		p.forget(dst, w)
		return
	}
	w.path = p.If.Path(l, netip.AddrPortFrom(p.If.IP(), p.form.Port()), netip.AddrPortFrom(dst, p.form.Port()))
	w.path.Follow()
	p.If.Look(dst, l, nil)
	w.open = true
	for _, m := range w.waiting {
		if !p.sendCopy(w, m) {
			p.s.Stats.NeighbourWait++
		}
	}
	p.waiting -= w.bytes
	w.waiting, w.bytes = nil, 0
}

// sendWhenKnown keeps a copy of a message that waits for a neighbour, if there is room.
func (p *Pair) sendWhenKnown(w *way, wr *qp.SendWR, h *Message) outcome {
	n := p.port.form.Len(*h, wr.Length)
	if !p.port.hasRoom(w, n) {
		p.s.Stats.NeighbourWait++
		return gone
	}
	b := make([]byte, n)
	if !p.build(b, wr, h) {
		return revoked
	}
	p.port.keep(w, packet{b, p.flow, h.Dst, uint8(wr.RKey)})
	return gone
}

// packet is a packet that waits for a neighbour.
type packet struct {
	payload []byte // UDP payload
	flow    Flow   // the sender's flow
	to      wire.QPN
	class   uint8
}

// hasRoom reports whether n more bytes may wait.
func (p *Port) hasRoom(w *way, n int) bool {
	return w.bytes+n <= maxWaiting && p.waiting+n <= maxWaitingAll
}

// keep adds a packet, for which there is room.
func (p *Port) keep(w *way, m packet) {
	w.waiting = append(w.waiting, m)
	w.bytes += len(m.payload)
	p.waiting += len(m.payload)
}

// sendCopy sends a packet that was built before; it returns false if the port is full.
func (p *Port) sendCopy(w *way, m packet) bool {
	frame := p.If.Alloc()
	if frame == nil {
		return false
	}
	copy(w.path.Payload(frame), m.payload)
	p.send(w, m.flow, m.to, frame, len(m.payload), m.class)
	return true
}

// send sends a packet of n bytes to a queue pair.
func (p *Port) send(w *way, f Flow, to wire.QPN, frame []byte, n int, class uint8) {
	if f != nil {
		f.Leaves(p.s.clock.Now, &w.path, to, n, class)
	}
	w.path.Send(frame, n)
	p.s.Stats.Sent++
}

// groupWay returns the path to a group, which needs no resolution; nil if the group is not reachable.
func (p *Port) groupWay(dst netip.Addr) *way {
	link, ok := p.If.GroupLink(dst)
	if !ok {
		p.s.Stats.NoRoute++
		return nil
	}
	w := &way{asked: p.s.clock.Now, open: true, path: p.If.Path(link, netip.AddrPortFrom(p.If.IP(), p.form.Port()),
		netip.AddrPortFrom(dst, p.form.Port()))}
	p.remember(dst, w)
	return w
}
