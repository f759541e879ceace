package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// heldRing keeps packets that came out of order until the gap closes, by PSN modulo
// the window: in pages, because a peer may be allowed far more than it ever sends, and
// a page is there while packets are kept in it.
type heldRing struct {
	pages   []*heldPage // nil until the first packet
	window  int
	spare   *heldPages
	current kept // being delivered
	account netif.Account
}

// kept is a packet whose segment waits for its turn.
type kept struct {
	netif.Held
	placed bool // its segment was placed early
}

// pageSlots is how many packets a page is for, a power of two.
const pageSlots = 64

type heldPage struct {
	slots [pageSlots]kept
	used  int
}

// heldPages are pages that no connection of the worker needs now.
type heldPages struct{ free []*heldPage }

// sparePages bounds them: for a whole wide window.
const sparePages = 1024

func (h *heldRing) init(window int, spare *heldPages) { h.window, h.spare = window, spare }

// place is the page and the slot of a PSN.
func (h *heldRing) place(psn wire.PSN) (page, slot uint32) {
	i := uint32(psn) & uint32(h.window-1)
	return i / pageSlots, i % pageSlots
}

// slot is where the packet of a PSN that is to be kept goes.
func (h *heldRing) slot(psn wire.PSN) (*heldPage, *kept) {
	if h.pages == nil {
		h.pages = make([]*heldPage, (h.window+pageSlots-1)/pageSlots)
	}
	page, slot := h.place(psn)
	if h.pages[page] == nil {
		h.pages[page] = h.spare.take()
	}
	return h.pages[page], &h.pages[page].slots[slot]
}

// take takes the packet kept for a PSN out of the ring.
func (h *heldRing) take(psn wire.PSN) (packet kept) {
	page, slot := h.place(psn)
	if h.pages == nil || h.pages[page] == nil {
		return kept{}
	}
	p := h.pages[page]
	packet, p.slots[slot] = p.slots[slot], kept{}
	if p.used--; p.used == 0 {
		h.spare.put(p)
		h.pages[page] = nil
	}
	return packet
}

func (s *heldPages) take() *heldPage {
	last := len(s.free) - 1
	if last < 0 {
		return new(heldPage)
	}
	p := s.free[last]
	s.free[last], s.free = nil, s.free[:last]
	return p
}

// put takes a page back that is empty.
func (s *heldPages) put(p *heldPage) {
	if len(s.free) < sparePages {
		s.free = append(s.free, p)
	}
}

// hold keeps the packet of a segment that came out of order. False: there is no
// memory to keep it.
func (c *Conn) hold(psn wire.PSN, seg *rdmap.Segment, d *netif.Datagram) bool {
	held, ok := c.keep(d)
	if !ok {
		return false
	}
	page, slot := c.held.slot(psn)
	if slot.Any() {
		c.held.release(c.port.If, &slot.Held)
	} else {
		page.used++
	}
	*slot = kept{Held: held}
	c.Stats.Held++
	c.port.If.Note("held: out of order")
	slot.placed = c.port.Immediate && c.stream.PlaceEarly(seg)
	return true
}

func (c *Conn) keep(d *netif.Datagram) (netif.Held, bool) {
	held, ok := c.port.If.Keep(&c.held.account, d)
	if !ok {
		c.s.Stats.RetainFailed++
		c.port.If.Note("dropped: no memory to keep it")
	}
	return held, ok
}

func (h *heldRing) release(n *netif.Interface, held *netif.Held) { n.Release(&h.account, held) }

// atOnce bounds the packets of a connection that were kept and are delivered before
// others have their turn: a gap that closes, or a receive that is posted, may set a whole
// window free.
const atOnce = 256

// later has Transmit go on with what was kept.
func (c *Conn) later() {
	c.more = true
	c.ready()
}

// deliverMore goes on with what was kept.
func (c *Conn) deliverMore() {
	c.more = false
	if c.rnr.Waiting() {
		c.deliverWaiting()
	} else {
		c.deliverHeld()
	}
	if c.live() {
		c.rel.OnAckRequested(c.now())
	}
}

// deliverHeld takes up what was held, as far as it is in order now; behind a
// message that waits for its receive it waits with it.
func (c *Conn) deliverHeld() {
	for n := 0; c.live(); n++ {
		if n == atOnce {
			c.later()
			return
		}
		psn, ok := c.rel.NextHeld()
		if !ok {
			break
		}
		c.deliverSlot(psn)
	}
	c.finIfWhole()
}

// deliverSlot delivers the packet held for a PSN, or has it wait. If delivering
// it ends in a fault of the client's memory, dropKept gives it back.
func (c *Conn) deliverSlot(psn wire.PSN) {
	current := &c.held.current
	*current = c.held.take(psn)
	if !c.rnr.Waiting() {
		var head [wire.MaxHeaderLen]byte
		seg := c.keptSegment(current, &head)
		if c.deliver(psn, &seg) {
			c.held.release(c.port.If, &current.Held)
			return
		}
		c.wait(psn)
	}
	c.rnr.append(psn, *current)
	*current = kept{}
}

// keptSegment is the segment of a packet that was kept; its TRP header was
// checked when it arrived.
func (r *remote) keptSegment(k *kept, head *[wire.MaxHeaderLen]byte) rdmap.Segment {
	private, data := k.Payload(wire.TRPExtLen, head)
	return rdmap.Segment{Head: private, Data: data, Placed: k.placed}
}

// dropKept gives back all packets that were kept: the connection is over.
func (c *Conn) dropKept() {
	for _, p := range c.held.pages {
		if p == nil {
			continue
		}
		for i := range p.slots {
			c.held.release(c.port.If, &p.slots[i].Held)
		}
		p.used = 0
		c.held.spare.put(p)
	}
	c.held.pages = nil
	c.held.release(c.port.If, &c.held.current.Held)
	c.dropWaiting()
}
