package trp

import (
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"
)

// takeInOrder delivers the next segment in order, or keeps it behind a message that waits for a receive. It
// returns false if there is no memory to keep the segment.
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
	return true
}

// deliver passes the next segment in order to the stream. It returns false if the segment's message waits
// for a receive, or waits because access to the client's memory is slow.
func (c *Conn) deliver(psn wire.PSN, seg *rdmap.Segment) bool {
	if c.term.frozen {
		return true // an earlier segment was refused: this one is neither placed nor acknowledged
	}
	c.term.placing, c.term.placingPSN = true, psn
	v := c.stream.Deliver(seg)
	c.term.placing = false
	c.unwritten.Placed(uint64(psn))
	switch {
	case v.Result == rdmap.Placed:
	case v.Result == rdmap.Busy, v.Result == rdmap.NoReceive && c.unwritten.Waits():
		c.rnr.Restart(c.now())
		c.setReason(memory)
		return false
	case v.Result == rdmap.NoReceive && c.rnr.Allows(uint64(psn), c.MaxReceiveWait(), c.now()):
		c.setReason(receive)
		return false
	default:
		c.refuse(psn, v, seg)
	}
	return true
}
