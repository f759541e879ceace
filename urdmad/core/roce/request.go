package roce

import (
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/wire/roce"
)

// request handles a packet of the peer's message, which arrived by a link.
func (c *Conn) request(h *roce.Header, link netif.Link, data []byte) bool {
	if c.resp.Refusing() {
		return false // a request before it is refused
	}
	t := h.Opcode.Traits()
	a := rc.Arrival{Opcode: h.Opcode, PSN: h.PSN, Size: uint32(len(data)), AckReq: h.AckReq}
	if t.Is(roce.First) && !t.Is(roce.Send) {
		a.VA, a.RKey, a.Length = h.VA, uint32(h.RKey), h.Length
	}
	if isAtomic(h.Opcode) {
		a.Length = mem.WordLen
	}
	do, slot := c.resp.Judge(&a)
	if do == rc.Deliver || c.resp.Refusing() { // the PSN is right, which a stranger would have to guess
		c.used(link)
	}
	switch do {
	case rc.Deliver:
		return c.deliver(h, &a, slot, data)
	case rc.Answer:
		return c.again(&a, slot)
	}
	if c.resp.Refusing() {
		c.refused()
		return false // invalid request
	}
	return false // not the next in order
}

func isAtomic(o roce.Opcode) bool { return o == roce.CompareSwap || o == roce.FetchAdd }

// deliver executes the next request in order.
func (c *Conn) deliver(h *roce.Header, a *rc.Arrival, slot int, data []byte) bool {
	number := c.resp.Expected()
	c.placing = true
	v := c.step(h, a, slot, data)
	c.placing = false
	if !c.live() {
		return true // completing it has ended the connection
	}
	c.unwritten.Placed(number)
	switch v.Is {
	case qp.Done:
		c.resp.Delivered(a)
		return true
	case qp.Busy:
		return false // its program's memory is slow; it is taken for lost
	case qp.NoReceive:
		c.FoundNoReceive(nil)
		c.resp.NotReady(uint8(c.QP.Attr.MinRNRTimer))
		return false // no receive is posted
	}
	c.resp.Refuse(a.PSN, nakOf(v))
	c.refused()
	return false // refused
}

// refused counts a request that ends the connection; Transmit sends the NAK.
func (c *Conn) refused() {
	c.s.Stats.Refused++
	c.s.log.Info("request refused", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "peer", c.Peer.Addr().String(),
		"peer_qpn", uint32(c.peer))
}

// step makes the message core execute a request.
func (c *Conn) step(h *roce.Header, a *rc.Arrival, slot int, data []byte) qp.Verdict {
	switch t := h.Opcode.Traits(); {
	case t.Is(roce.Send):
		return c.placeSend(h, t, data)
	case t.Is(roce.Write):
		return c.placeWrite(h, a, t, data)
	case isAtomic(h.Opcode):
		return c.atomic(h, slot)
	}
	return c.read(a, slot)
}

func (c *Conn) placeSend(h *roce.Header, t roce.Traits, data []byte) qp.Verdict {
	q := c.QP
	if active, _ := q.Recv.Active(); !active { // active if its first packet arrived while access to memory was slow
		if v := q.BeginReceive(h.SRQ, 0); v.Is != qp.Done {
			return v
		}
	}
	v := q.PlaceSend(data, uint64(len(data)))
	if v.Is == qp.Done && t.Is(roce.Last) {
		v = q.EndSend(qp.Ending{HasImmediate: t.Is(roce.HasImmediate), Immediate: h.Immediate,
			Invalidates: t.Is(roce.HasInvalidate),
			STag:        mem.STag(h.Dead), Solicited: h.Solicited})
	}
	if v.Is != qp.Done && v.Is != qp.Busy {
		_, why := eventOf(nakOf(v))
		q.FailReceive(v, uint32(why))
	}
	return v
}

func (c *Conn) placeWrite(h *roce.Header, a *rc.Arrival, t roce.Traits, data []byte) qp.Verdict {
	q, rest := c.QP, c.resp.Rest(a)
	if t.Is(roce.First) {
		c.write = write{mem.STag(h.RKey), h.VA, h.Length}
	}
	v := q.PlaceWrite(c.write.stag, c.write.va+uint64(c.write.length-rest), data, uint64(rest))
	switch {
	case v.Is != qp.Done || !t.Is(roce.Last):
	case t.Is(roce.HasImmediate):
		return q.EndWriteImmediate(h.SRQ, h.Immediate, c.write.length, h.Solicited)
	default:
		q.EndWrite()
	}
	return v
}

func (c *Conn) read(a *rc.Arrival, slot int) qp.Verdict {
	source, v := c.QP.BeginRead(mem.STag(a.RKey), a.VA, a.Length, c.QP)
	if v.Is == qp.Done {
		c.answers[slot].source.Release()
		c.answers[slot] = answer{source: source}
	}
	return v
}

// again answers a repeated request: a Read with the present contents of memory, an atomic with its first
// result.
func (c *Conn) again(a *rc.Arrival, slot int) bool {
	if !isAtomic(a.Opcode) {
		switch v := c.read(a, slot); v.Is {
		case qp.Done:
		case qp.NoReceive, qp.Busy: // the peer will repeat the request
			return false // not ready; it is taken for lost
		default:
			c.resp.Refuse(a.PSN, nakOf(v))
			c.refused()
			return false // refused
		}
	}
	c.resp.Repeated(a, slot)
	return false // answered again
}

func (c *Conn) atomic(h *roce.Header, slot int) qp.Verdict {
	op := mem.AtomicOp{Add: true, Data: h.Swap}
	if h.Opcode == roce.CompareSwap {
		op = mem.AtomicOp{Data: h.Swap, Mask: ^uint64(0), Compare: h.Compare, CompareMask: ^uint64(0)}
	}
	q, found := c.QP, &original{}
	value, done, v := q.Atomic(mem.STag(h.RKey), h.VA, &op, func(value uint64) {
		found.value, found.done = value, true
		q.Table().Wake(q)
	})
	if v.Is != qp.Done {
		return v
	}
	if done {
		found.value, found.done = value, true
	}
	c.answers[slot].source.Release()
	c.answers[slot] = answer{atomic: found}
	return v
}
