package trp

import (
	"urdma/urdmad/netif"
	"urdma/urdmad/rdmap"
	"urdma/wire"
)

// heldRing keeps packets that came out of order until the gap closes; slot = PSN
// modulo the window.
type heldRing struct {
	slots   []netif.Held // nil until the first
	window  int
	current netif.Held // being delivered
	account netif.Account
}

func (h *heldRing) init(window int) { h.window = window }

func (h *heldRing) slot(psn wire.PSN) *netif.Held {
	if h.slots == nil {
		h.slots = make([]netif.Held, h.window)
	}
	return &h.slots[uint32(psn)&uint32(h.window-1)]
}

// hold keeps the packet of a segment that came out of order. False: there is no
// memory to keep it.
func (c *Conn) hold(psn wire.PSN, seg *rdmap.Segment, d *netif.Datagram) bool {
	slot := c.held.slot(psn)
	if !slot.Any() {
		held, ok := c.keep(d)
		if !ok {
			return false
		}
		*slot = held
	}
	c.Stats.Held++
	c.port.If.Note("held: out of order")
	if c.port.Immediate {
		c.stream.PlaceEarly(seg)
	}
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

// deliverHeld takes up what was held, as far as it is in order now; behind a
// message that waits for its receive it waits with it.
func (c *Conn) deliverHeld() {
	for c.live() {
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
	slot, current := c.held.slot(psn), &c.held.current
	*current, *slot = *slot, netif.Held{}
	if !c.rnr.waiting {
		var head [wire.MaxHeaderLen]byte
		seg := c.keptSegment(current, &head)
		if c.deliver(psn, &seg) {
			c.held.release(c.port.If, current)
			return
		}
		c.wait(psn)
	}
	c.rnr.append(psn, *current)
	*current = netif.Held{}
}

// keptSegment is the segment of a packet that was kept; its TRP header was
// checked when it arrived.
func (r *remote) keptSegment(held *netif.Held, head *[wire.MaxHeaderLen]byte) rdmap.Segment {
	private, data := held.Payload(wire.HeaderLen(r.extended), head)
	return rdmap.Segment{Head: private, Data: data}
}

// dropKept gives back all packets that were kept: the connection is over.
func (c *Conn) dropKept() {
	for i := range c.held.slots {
		c.held.release(c.port.If, &c.held.slots[i])
	}
	c.held.slots = nil
	c.held.release(c.port.If, &c.held.current)
	c.dropWaiting()
}
