package datagram

import (
	"urdma/urdmad/core/qp"
)

// This file carries messages between queue pairs of this urdmad, which need no packet.

// sendLocal carries a message to a queue pair at one of our ports.
func (p *Pair) sendLocal(at *Port, i uint32, wr *qp.SendWR, h *Message) outcome {
	to := p.s.destination(at, h)
	if to == nil {
		return gone
	}
	if p.QP.SourceDead(i) {
		return revoked
	}
	a := arrival{Message: *h, src: p.port.If.IP(), dst: at.If.IP(), class: p.class(wr), length: int(wr.Length)}
	v := to.begin(&a)
	switch v.Is {
	case qp.Done:
		p.wait.until = 0
		p.copyTo(to, i, wr, &a)
		return gone
	case qp.NoReceive, qp.Busy:
		if to.receives() && p.mayWait(&to.sender) {
			return later
		}
	}
	to.dropped(v)
	return gone
}

// receives reports whether the queue pair has ever had a receive posted, or has a shared receive queue.
func (p *Pair) receives() bool { return p.QP.SRQ != nil || p.QP.Stats.RecvsPosted != 0 }

// copyTo copies a message, whose memory is accessible, to the receive that to has taken, and completes the
// receive.
func (p *Pair) copyTo(to *Pair, i uint32, wr *qp.SendWR, a *arrival) {
	for off := uint32(0); off < wr.Length; {
		b, _ := p.QP.Part(i, off, wr.Length-off)
		if to.place(b).Is != qp.Done {
			return
		}
		off += uint32(len(b))
	}
	p.s.Stats.Local++
	to.end(a)
}
