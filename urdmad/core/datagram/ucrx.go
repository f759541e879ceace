package datagram

import (
	"net/netip"

	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// arriving is the message that packets of a peer bring.
type arriving struct {
	next    wire.PSN // expected
	message bool     // one is under way
	write   bool     // it is a Write
	length  uint32   // of it, so far
	target  target
}

// target is where a Write over RoCEv2 goes, which its first packet alone says.
type target struct {
	stag   wire.STag
	to     uint64
	length uint32 // of all of it
}

// late is how many PSNs before the one expected are those of packets that a network
// has duplicated or overtaken; further ones a peer's that begins anew.
const late = 256

// late reports whether a packet is one of those. It changes nothing.
func (in *arriving) late(p wire.PSN) bool { return uint32(in.next)-uint32(p)-1 < late }

const whyLate = "it came before, or later than others that were sent after it"

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
	if to.in.late(h.PSN) {
		s.Stats.Late++
		p.If.Note("dropped: " + whyLate)
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

// take gives the payload of a packet that is not late to its message. False: it was
// dropped, and so is all that is left of its message (InfiniBand vol. 1).
func (c *UC) take(h *wire.UC, data []byte) bool {
	in := &c.in
	expected := h.PSN == in.next
	in.next = h.PSN.Add(1)
	if in.message && (h.First || !expected || h.Write != in.write) {
		c.s.Stats.Torn++
		c.drop()
	}
	var v qp.Verdict
	if h.First {
		in.message, in.write, in.length = true, h.Write, 0
		if !h.Write {
			v = c.begin()
		}
	} else if !in.message {
		return false
	}
	if v.Is == qp.Done {
		v = c.place(h, data)
	}
	if v.Is == qp.Done && h.Last {
		v = c.end(h)
		in.message = false
	}
	if v.Is != qp.Done {
		c.refused(v)
	}
	return v.Is == qp.Done
}

// drop drops the message that is under way. Its receive, if it took one, serves the
// next.
func (c *UC) drop() {
	c.in.message = false
	c.QP.Recv.Tear()
}

// begin takes a receive.
func (c *UC) begin() qp.Verdict {
	v := c.QP.BeginReceive(0, 0)
	if v.Is == qp.Done {
		c.starved = false
	}
	return v
}

func (c *UC) place(h *wire.UC, data []byte) (v qp.Verdict) {
	if h.Write {
		v = c.QP.PlaceWrite(mem.STag(h.STag), h.TO, data, uint64(len(data)))
	} else {
		v = c.QP.PlaceSend(data, uint64(len(data)))
	}
	c.in.length += uint32(len(data))
	return v
}

// end completes what the message completes.
func (c *UC) end(h *wire.UC) qp.Verdict {
	switch q := c.QP; {
	case !h.Write:
		return q.EndSend(qp.Ending{HasImmediate: h.HasImmediate, Immediate: h.Immediate, Solicited: h.Solicited})
	case h.HasImmediate:
		v := q.EndWriteImmediate(0, h.Immediate, c.in.length, h.Solicited)
		c.starved = c.starved && v.Is != qp.Done
		return v
	default:
		q.EndWrite()
		return qp.Verdict{}
	}
}

// refused drops a message for a verdict. A wrong receive ends the queue pair; all else
// is as if the network had lost the message.
func (c *UC) refused(v qp.Verdict) {
	switch v.Is {
	case qp.NoReceive:
		c.s.Stats.NoReceive++
	case qp.TooLong:
		c.s.Stats.NoRoom++
	case qp.Denied:
		c.s.Stats.Refused++
	case qp.Revoked:
		c.QP.FailReceive(v, 0)
		c.fail()
	case qp.BadReceive:
		c.fail()
	}
	if c.live() {
		c.drop()
	}
}

// fail ends the queue pair because of a wrong receive.
func (c *UC) fail() {
	if c.live() {
		c.QP.FlushForReceive()
		c.withdraw()
	}
}
