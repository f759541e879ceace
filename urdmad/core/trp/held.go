package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// heldRing keeps packets that arrived out of order until the gap closes, indexed by PSN modulo the window.
// It consists of pages, because a peer may be allowed far more packets than it ever sends; a page is
// allocated only while it holds packets.
type heldRing struct {
	pages   []*heldPage // nil until the first packet
	window  int
	spare   *heldPages
	current kept // the packet that is being delivered
	account netif.Account
}

// kept is a packet whose segment is not delivered yet.
type kept struct {
	netif.Held
	placed bool // its segment was placed on arrival
}

// pageSlots is the number of packets in a page, a power of two.
const pageSlots = 64

type heldPage struct {
	slots [pageSlots]kept
	used  int
}

// heldPages are the worker's unused pages.
type heldPages struct{ free []*heldPage }

// sparePages bounds the unused pages: enough for one longest window.
const sparePages = 1024

func (h *heldRing) init(window int, spare *heldPages) { h.window, h.spare = window, spare }

// place returns the page and the slot for a PSN.
func (h *heldRing) place(psn wire.PSN) (page, slot uint32) {
	i := uint32(psn) & uint32(h.window-1)
	return i / pageSlots, i % pageSlots
}

// slot returns the slot in which to keep the packet with this PSN.
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

// take removes the packet with this PSN from the ring.
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

// put takes back an empty page.
func (s *heldPages) put(p *heldPage) {
	if len(s.free) < sparePages {
		s.free = append(s.free, p)
	}
}

// hold keeps the packet of a segment that arrived out of order. It returns false if there is no memory to
// keep it.
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
	slot.placed = c.port.Immediate && c.stream.PlaceEarly(seg)
	return true
}

func (c *Conn) keep(d *netif.Datagram) (netif.Held, bool) {
	held, ok := c.port.If.Keep(&c.held.account, d)
	if !ok {
		c.s.Stats.RetainFailed++
	}
	return held, ok
}

func (h *heldRing) release(n *netif.Interface, held *netif.Held) { n.Release(&h.account, held) }

// deliverBudget bounds the kept packets of one connection that are delivered before other connections get
// their turn: when a gap closes or a receive is posted, a whole window may become deliverable.
const deliverBudget = 256

// later makes Transmit continue to deliver kept packets.
func (c *Conn) later() {
	c.more = true
	c.ready()
}

// deliverMore continues to deliver kept packets.
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

// deliverHeld delivers the held packets that are now in order. Behind a message that waits for its receive,
// they wait too.
func (c *Conn) deliverHeld() {
	for n := 0; c.live(); n++ {
		if n == deliverBudget {
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

// deliverSlot delivers the packet held for a PSN, or appends it to the waiting packets. If delivery faults
// in the client's memory, dropKept releases the packet.
func (c *Conn) deliverSlot(psn wire.PSN) {
	current := &c.held.current
	*current = c.held.take(psn)
	if !c.rnr.Waiting() {
		seg := current.segment()
		if c.deliver(psn, &seg) {
			c.held.release(c.port.If, &current.Held)
			return
		}
		c.wait(psn)
	}
	c.rnr.append(psn, *current)
	*current = kept{}
}

// segment returns the segment of a kept packet, whose TRP header was checked when it arrived.
func (k *kept) segment() rdmap.Segment {
	data := k.Payload(wire.TRPExtLen)
	return rdmap.Segment{Head: data, Data: data, Placed: k.placed}
}

// dropKept releases all kept packets when the connection ends.
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
