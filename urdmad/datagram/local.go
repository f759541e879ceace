package datagram

import (
	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
	"urdma/wire"
)

// This file has messages to queue pairs of this urdmad, which need no packet. A
// sender whose receiver has used up what it posted waits a moment: what two programs of
// one machine say to each other is lost for want of a processor sooner than for
// want of a wire.

const (
	// patience is how long a sender waits for a receive, and lookAgain how often it
	// looks. A receiver that lets it pass is not waited for again before it has
	// posted one.
	patience  = 100 * clock.Millisecond
	lookAgain = 50 * clock.Microsecond
)

// wait is a sender's wait for a receive.
type wait struct {
	timer *clock.Timer
	until clock.Time // 0: it doesn't wait
}

// sendLocal carries a message to a queue pair at a port of ours.
func (p *Pair) sendLocal(at *Port, i uint32, wr *qp.SendWR, h *wire.Datagram) outcome {
	to := p.s.destination(at, h)
	if to == nil {
		return gone
	}
	if p.QP.SourceDead(i) {
		return revoked
	}
	a := arrival{h: h, src: p.port.If.IP().As4(), dst: at.If.IP().As4(), length: int(wr.Length)}
	switch to.begin(&a) {
	case begun:
	case noReceive:
		if p.mayWait(to) {
			return later
		}
		p.s.Stats.NoReceive++
		return gone
	default:
		return gone
	}
	p.wait.until = 0
	p.copyTo(to, i, wr, &a)
	return gone
}

// copyTo writes a message, whose memory is there, into the receive that to has
// begun, and completes that.
func (p *Pair) copyTo(to *Pair, i uint32, wr *qp.SendWR, a *arrival) {
	for off := uint32(0); off < wr.Length; {
		b, _ := p.QP.Part(i, off, wr.Length-off)
		if !to.QP.Recv.Scatter(b) {
			to.breakReceive()
			return
		}
		off += uint32(len(b))
	}
	p.s.Stats.Local++
	to.end(a)
}

// mayWait has the sender wait for a receive of to's, unless it has waited long
// enough.
func (p *Pair) mayWait(to *Pair) bool {
	now := p.s.clock.Now
	switch {
	case to.starved || to.QP.SRQ == nil && to.QP.Stats.RecvsPosted == 0:
		return false // it doesn't receive
	case p.wait.until == 0:
		p.wait.until = now + patience
	case now >= p.wait.until:
		p.wait.until = 0
		to.starved = true
		return false
	}
	p.s.clock.Set(p.wait.timer, now+lookAgain)
	return true
}

// resume is the timer of a sender that waits.
func (p *Pair) resume() {
	if p.live() {
		p.s.table.Ready(p.QP)
	}
}
