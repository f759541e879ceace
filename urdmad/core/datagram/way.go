package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

const (
	// maxWays bounds the addresses that a port remembers the way to.
	maxWays = 4096
	// maxHeld and maxHeldAll bound, in bytes, what waits for one neighbour and for
	// all of a port's.
	maxHeld    = 256 << 10
	maxHeldAll = 4 << 20
	// confirmAfter is how long a neighbour's address is used before it is asked for
	// again: no answer of a peer's confirms it.
	confirmAfter = 20 * clock.Second
)

// way leads to one address.
type way struct {
	path    netif.Path
	open    bool   // the next hop's Ethernet address is known
	waiting []held // until it is
	bytes   int    // of those
	asked   clock.Time
}

// way is the way to an address, which is asked for if it isn't known. It is nil, and
// that is counted, if there is no route, or if more ways are asked for than are
// remembered: behind a gateway that doesn't answer each would wait with it.
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
		return nil // nobody is there
	}
	return w
}

// remember keeps a way. If there are too many, chance says which one goes.
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
	p.held -= w.bytes
	w.waiting, w.bytes = nil, 0
	if w.open {
		w.path.Leave()
	}
	if p.ways[dst] == w {
		delete(p.ways, dst)
	}
}

// resolved sends what waited, or drops it.
func (p *Port) resolved(dst netip.Addr, w *way, l netif.Link, ok bool) {
	if p.ways[dst] != w {
		return // forgotten meanwhile
	}
	if !ok {
		p.s.Stats.NoNeighbour += uint64(len(w.waiting))
		p.forget(dst, w)
		return
	}
	w.path = p.If.Path(l, netip.AddrPortFrom(p.If.IP(), p.form.port()), netip.AddrPortFrom(dst, p.form.port()))
	w.path.Follow()
	p.If.Look(dst, l, nil)
	w.open = true
	for _, m := range w.waiting {
		frame := p.If.Alloc()
		if frame == nil {
			p.s.Stats.NeighbourWait++
			continue
		}
		copy(w.path.Payload(frame), m.payload)
		p.mark(w, m.class)
		w.path.Send(frame, len(m.payload))
		p.s.Stats.Sent++
	}
	p.held -= w.bytes
	w.waiting, w.bytes = nil, 0
}

// holdFor copies a message that waits for a neighbour, if there is room.
func (p *Pair) holdFor(w *way, i uint32, wr *qp.SendWR, h *wire.Datagram) outcome {
	n := p.port.form.length(h, wr.Length)
	if w.bytes+n > maxHeld || p.port.held+n > maxHeldAll {
		p.s.Stats.NeighbourWait++
		return gone
	}
	b := make([]byte, n)
	if !p.build(b, i, wr, h, p.port.form) {
		return revoked
	}
	p.port.hold(w, held{b, uint8(wr.RKey)})
	return gone
}

// held is a packet that waits for a neighbour.
type held struct {
	payload []byte // UDP's
	class   uint8
}

// hold keeps a packet for which there is room.
func (p *Port) hold(w *way, m held) {
	w.waiting = append(w.waiting, m)
	w.bytes += len(m.payload)
	p.held += len(m.payload)
}

// groupWay is the way to a group, of which the port needs to know nothing; nil if
// it reaches none.
func (p *Port) groupWay(dst netip.Addr) *way {
	link, ok := p.If.GroupLink(dst)
	if !ok {
		p.s.Stats.NoRoute++
		return nil
	}
	w := &way{asked: p.s.clock.Now, open: true, path: p.If.Path(link, netip.AddrPortFrom(p.If.IP(), p.form.port()),
		netip.AddrPortFrom(dst, p.form.port()))}
	p.remember(dst, w)
	return w
}
