package datagram

import (
	"net/netip"

	"urdma/urdmad/mem"
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// arriving is the message that packets of a peer bring. A receive that was taken for
// one that is torn serves the next.
type arriving struct {
	next    wire.PSN // expected
	message bool     // one is under way
	write   bool     // it is a Write
	length  uint32   // of it, so far
}

// late is how many PSNs before the one expected are those of packets that a network
// has duplicated or overtaken; further ones a peer's that begins anew.
const late = 256

// receiveUC handles a packet between queue pairs of type UC.
func (p *Port) receiveUC(d *netif.Datagram) {
	s := p.s
	var h wire.UC
	n, err := h.Parse(d.Head)
	if err != nil {
		s.Stats.Malformed++
		p.If.Note("dropped: " + err.Error())
		return
	}
	s.Stats.Received++
	to := s.ucs[h.Dst]
	if to == nil || !to.takes(p, d.Src.Addr(), h.Src) {
		s.Stats.NoQueuePair++
		p.If.Note("dropped: no queue pair takes it")
		return
	}
	if !to.take(&h, d.Data[n:]) {
		p.If.Note("dropped: the message is torn or refused, or no receive is posted")
	}
}

// takes reports whether a message that comes to a port is the peer's.
func (c *UC) takes(at *Port, from netip.Addr, src wire.QPN) bool {
	return c.port == at && c.peer == from && c.peerQPN == src && qp.Receives(c.QP.State())
}

// take gives a packet's payload to its message. False: it was dropped, and so is
// all that is left of its message (InfiniBand vol. 1, 9.8.2.2).
func (c *UC) take(h *wire.UC, data []byte) bool {
	in := &c.in
	c.s.table.Heard(c.QP)
	if len(data) > 0 && c.QP.Client.Backlogged() {
		return false // as if lost: its client's pages take nothing
	}
	if uint32(in.next)-uint32(h.PSN)-1 < late {
		c.s.Stats.Late++
		return false
	}
	expected := h.PSN == in.next
	in.next = h.PSN.Add(1)
	if h.First {
		if in.message {
			c.s.Stats.Torn++ // its end is missing
		}
		*in = arriving{next: in.next, message: true, write: h.Write}
		if !h.Write && !c.begin() {
			in.message = false
			return false
		}
	} else if !in.message || !expected || h.Write != in.write {
		if in.message {
			c.s.Stats.Torn++
		}
		in.message = false
		return false
	}
	if !c.place(h, data) {
		in.message = false
		return false
	}
	in.length += uint32(len(data))
	if h.Last {
		in.message = false
		return c.end(h)
	}
	return true
}

// begin takes a receive, or uses the one that a torn message has left.
func (c *UC) begin() bool {
	q := c.QP
	if active, _ := q.Recv.Active(); active {
		q.Recv.Rewind()
		return true
	}
	if q.Client.Backlogged() {
		return false
	}
	switch q.Recv.Take() {
	case qp.ReceiveTaken:
		c.starved = false
		return true
	case qp.NoReceive:
		c.s.Stats.NoReceive++
		return false
	}
	c.fail()
	return false
}

func (c *UC) place(h *wire.UC, data []byte) bool {
	q := c.QP
	switch {
	case h.Write:
		return c.write(h, data)
	case uint64(len(data)) > uint64(q.Recv.Room()):
		c.s.Stats.NoRoom++
		return false
	case !q.Recv.Scatter(data):
		q.Recv.End(abi.CQE{Status: abi.StatusLocProtErr}, false)
		c.fail()
		return false
	}
	return true
}

func (c *UC) write(h *wire.UC, data []byte) bool {
	if len(data) == 0 {
		return true
	}
	q := c.QP
	r := q.Table().Regions.Lookup(mem.STag(h.STag))
	if q.CheckRemote(r, h.TO, uint64(len(data)), mem.RemoteWrite) != mem.Allowed {
		c.s.Stats.Refused++
		return false
	}
	q.Store(r, h.TO, data)
	q.Stats.BytesRecv += uint64(len(data))
	return true
}

// end completes what the message completes.
func (c *UC) end(h *wire.UC) bool {
	q := c.QP
	switch {
	case h.Write && h.HasImmediate:
		if !c.begin() {
			return false
		}
		q.Recv.Arrived(qp.WrittenWith(h.Immediate, c.in.length), h.Solicited)
	case h.Write:
		q.WriteArrived()
	default:
		var how abi.CQE
		if h.HasImmediate {
			how.WCFlags, how.ImmOrSTag = abi.WCWithImm, h.Immediate
		}
		q.Recv.Arrived(how, h.Solicited)
	}
	return true
}

// fail ends the queue pair because of a wrong receive.
func (c *UC) fail() {
	if c.live() {
		c.QP.Flush()
		c.withdraw()
	}
}
