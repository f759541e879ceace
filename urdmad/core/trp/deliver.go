package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// takeInOrder delivers the segment that is the next in order, or keeps it behind
// a message that waits for a receive. False: there is no memory to keep it.
func (c *Conn) takeInOrder(psn wire.PSN, seg *rdmap.Segment, d *netif.Datagram) bool {
	behind := c.rnr.Waiting()
	if !behind && c.deliver(psn, seg) {
		return true
	}
	held, ok := c.keep(d)
	if !ok {
		return false
	}
	if !behind {
		c.wait(psn)
	}
	c.rnr.append(psn, kept{Held: held})
	c.port.If.Note("held: no receive is posted")
	return true
}

// deliver hands the next segment in order to the stream. It returns false for a
// message that may wait for a receive, or that waits because the client's memory
// is slow.
func (c *Conn) deliver(psn wire.PSN, seg *rdmap.Segment) bool {
	if c.term.frozen {
		return true // refused a segment before this one: it is neither placed nor acknowledged
	}
	c.term.placing, c.term.placingPSN = true, psn
	v := c.stream.Deliver(seg)
	c.term.placing = false
	c.unwritten.Placed(uint64(psn))
	switch {
	case v.Result == rdmap.Placed:
	case v.Result == rdmap.Busy, v.Result == rdmap.NoReceive && c.unwritten.Waits():
		c.rnr.Restart(c.now())
		c.lacks(memory)
		return false
	case v.Result == rdmap.NoReceive && c.rnr.Allows(uint64(psn), c.ReceivePatience(), c.now()):
		c.lacks(receive)
		return false
	default:
		c.refuse(psn, v, seg)
	}
	return true
}
