package roce

import (
	"urdma/reason"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire/roce"
)

// response handles an acknowledgement, or a packet that answers a Read or an atomic.
func (c *Conn) response(h *roce.Header, data []byte) bool {
	if c.QP.State() == abi.QPSRTR {
		return false // nothing was sent yet
	}
	var heard rc.Heard
	if h.Opcode == roce.Acknowledge {
		heard = c.req.Acknowledgement(c.now(), h.PSN, h.AETH.Syndrome)
	} else if answer, taken := c.answerArrived(h, data); taken {
		heard = answer
	} else {
		return false
	}
	switch {
	case heard.Refused:
		return false // it answers nothing that is under way
	case heard.Take && !c.take(&heard, h, data):
		return true
	}
	c.QP.Acknowledge(c.req.Acked())
	if heard.Failure != rc.None && c.live() {
		c.fail(heard)
	}
	return true
}

func (c *Conn) answerArrived(h *roce.Header, data []byte) (heard rc.Heard, taken bool) {
	kind, ok := c.req.KindAt(h.PSN)
	switch {
	case ok && (kind == rc.Atomic) != (h.Opcode == roce.AtomicAcknowledge):
		return heard, false // it answers another request
	case len(data) > 0 && c.QP.Client.Backlogged():
		return heard, false // its program's memory is slow; it is taken for lost
	}
	return c.req.Response(c.now(), h.PSN, uint32(len(data))), true
}

// take places the data of an answer to a Read or atomic. It returns false if the connection has ended.
func (c *Conn) take(heard *rc.Heard, h *roce.Header, data []byte) bool {
	q, atomic := c.QP, h.Opcode == roce.AtomicAcknowledge
	wr := q.AwaitsAnswer(heard.Token, atomic)
	if wr == nil || !atomic && wr.Got() != heard.Offset {
		c.s.log.Error("an answer has no work request", "qpn", q.QPN, "token", heard.Token, "offset", heard.Offset)
		q.Fail(qp.EventFatal, reason.NAKFailed)
		return false
	}
	var v qp.Verdict
	c.placing = true
	if atomic {
		v = q.PlaceOriginal(wr, h.Original)
	} else {
		v = q.PlaceResponse(wr, data)
	}
	c.placing = false
	if v.Is != qp.Done && c.live() { // its memory was deregistered
		q.CompleteBefore(heard.Token)
		q.FailOldest(abi.StatusLocProtErr, reason.LocalRevoked)
		c.end(qp.CloseLocal)
	}
	return c.live()
}
