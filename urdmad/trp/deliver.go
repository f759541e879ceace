package trp

import (
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/urdmad/rdmap"
	"urdma/wire"
)

// takeInOrder delivers the segment that is the next in order, or keeps it behind
// a message that waits for a receive. False: there is no memory to keep it.
func (c *Conn) takeInOrder(psn wire.PSN, seg *rdmap.Segment, d *netif.Datagram) bool {
	if !c.rnr.waiting && c.deliver(psn, seg) {
		return true
	}
	held, ok := c.keep(d)
	if !ok {
		return false
	}
	c.wait(psn)
	c.rnr.append(psn, held)
	c.port.If.Note("held: no receive is posted")
	return true
}

// deliver hands the next segment in order to the stream. It returns false for a
// message that may wait for a receive, or that waits because the client's memory
// is slow.
func (c *Conn) deliver(psn wire.PSN, seg *rdmap.Segment) bool {
	c.term.placing, c.term.placingPSN = true, psn
	v := c.stream.Deliver(seg)
	c.term.placing = false
	switch {
	case v.Result == rdmap.Busy:
		c.rnr.since = c.now() // its patience is for receives
		c.lacks(memory)
		return false
	case v.Result == rdmap.NoReceive && (c.ByNumber || c.rnr.mayWait(qp.ReceiverPatience(c.QP, c.RNRRetry), c.now())):
		c.lacks(receive)
		return false
	case v.Result != rdmap.Placed:
		c.refuse(psn, v, seg)
	}
	return true
}
