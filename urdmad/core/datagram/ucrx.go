package datagram

import (
	"net/netip"

	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// arriving is the message that is being received.
type arriving struct {
	next    wire.PSN // expected PSN
	message bool     // a message is in progress
	write   bool     // that message is a Write
	length  uint32   // bytes of it received so far
}

// late is how many PSNs before the expected one belong to packets that a network has duplicated or
// overtaken; any other PSN belongs to a peer that starts anew.
const late = 256

// late reports whether a packet is duplicated or overtaken. It changes nothing.
func (in *arriving) late(p wire.PSN) bool { return uint32(in.next)-uint32(p)-1 < late }

// Unstated is the sender's queue pair number if packets do not include it.
const Unstated = ^wire.QPN(0)

// UC returns the queue pair of type UC that accepts a packet from a host's queue pair, or nil.
func (p *Port) UC(dst wire.QPN, from netip.Addr, src wire.QPN) *UC {
	p.s.Stats.Received++
	if c := p.s.ucs[dst]; c != nil && (c.takes(p, from, src) || src == Unstated && c.takes(p, from, c.peerQPN)) {
		p.s.table.Serving = c.QP
		return c
	}
	p.s.Stats.NoQueuePair++
	return nil
}

// Expected returns the PSN of the next packet, and the received length of the message in progress.
func (c *UC) Expected() (psn wire.PSN, length uint32) { return c.in.next, c.in.length }

// Late reports whether a packet with a PSN came before, or later than others that were sent after it.
func (c *UC) Late(psn wire.PSN) bool {
	if !c.in.late(psn) {
		return false
	}
	c.s.Stats.Late++
	return true
}

// takes reports whether a message to a port comes from the peer.
func (c *UC) takes(at *Port, from netip.Addr, src wire.QPN) bool {
	return c.port == at && c.Peer.Addr() == from && c.peerQPN == src && qp.Receives(c.QP.State())
}

// Take adds the payload of a packet that is not late to its message. It returns false if the packet was
// dropped; then the rest of the message is dropped too (InfiniBand vol. 1).
func (c *UC) Take(h *Part, data []byte) bool {
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

// drop drops the message in progress. Its receive, if it took one, is used for the next.
func (c *UC) drop() {
	c.in.message = false
	c.QP.Recv.Interrupt()
}

// begin takes a receive.
func (c *UC) begin() qp.Verdict {
	v := c.QP.BeginReceive(0, 0)
	if v.Is == qp.Done {
		c.starved = false
	}
	return v
}

func (c *UC) place(h *Part, data []byte) (v qp.Verdict) {
	if h.Write {
		v = c.QP.PlaceWrite(mem.STag(h.STag), h.TO, data, uint64(len(data)))
	} else {
		v = c.QP.PlaceSend(data, uint64(len(data)))
	}
	c.in.length += uint32(len(data))
	return v
}

// end completes the message.
func (c *UC) end(h *Part) qp.Verdict {
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

// refused drops a message for a verdict. An invalid receive ends the queue pair; for the peer, any other
// refusal looks like a loss in the network.
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

// fail ends the queue pair because of an invalid receive.
func (c *UC) fail() {
	if c.live() {
		c.QP.FlushForReceive()
		c.withdraw()
	}
}
