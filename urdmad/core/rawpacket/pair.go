package rawpacket

import (
	"urdma/reason"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// Pair serves a queue pair of type RAW_PACKET: a qp.Carrier without a peer. A send completes when its frame has
// left.
type Pair struct {
	qp.Connection
	port *Port
	sent uint64 // frames that have left: the Mark of the last
}

// sendBudget bounds the frames that one queue pair sends in a turn.
const sendBudget = 64

// Transmit implements qp.Carrier.
func (p *Pair) Transmit() (n int) {
	q := p.QP
	for n < sendBudget && q.Ready() {
		i := q.SQ.Next()
		wr := q.SQ.At(i)
		buffer := p.port.If.Alloc()
		if buffer == nil { // the port is full: the next turn retries
			q.Acknowledge(p.sent)
			p.port.s.table.Ready(q)
			return n
		}
		frame, why := p.build(buffer, wr)
		if why != 0 {
			q.Acknowledge(p.sent)
			q.FailSend(i, why)
			p.Failed()
			return n
		}
		p.port.If.SendOut(len(frame))
		p.port.returns(frame)
		p.port.s.Stats.Sent++
		p.sent++
		q.SQ.Sent(wr.Length, p.sent, false)
		n++
	}
	q.Acknowledge(p.sent)
	if n == sendBudget {
		p.port.s.table.Ready(q)
	}
	return n
}

// build copies a work request's frame into a buffer of the port, and checks the copy; why says what is wrong.
func (p *Pair) build(buffer []byte, wr *qp.SendWR) (frame []byte, why reason.Number) {
	if uint64(wr.Length) > uint64(len(buffer)) {
		return nil, reason.DatagramSize
	}
	frame = buffer[:wr.Length]
	switch {
	case !p.QP.Gather(frame, wr, 0):
		return nil, reason.LocalRevoked
	case !maySend(p.port.wire.Access, frame, p.port.If.MAC()):
		return nil, reason.Frame
	}
	return frame, 0
}

// receive copies a frame into the next receive of the flow's queue pair; on its worker's thread.
func (f *Flow) receive(frame []byte) {
	p, _ := f.qp.Carrier().(*Pair)
	if p == nil || p.Dev != f.dev || !qp.Receives(f.qp.State()) {
		return
	}
	s := f.stack
	s.table.Spend(frameCost)
	s.table.Serving = f.qp
	v := f.qp.BeginReceive(0, uint32(len(frame)))
	if v.Is == qp.Done {
		v = p.QP.PlaceDatagram(frame)
	}
	switch v.Is {
	case qp.Done:
		f.qp.EndSend(qp.Ending{})
		s.Stats.Received++
	case qp.NoReceive, qp.Busy:
		s.Stats.NoReceive++
	case qp.NoRoom:
		s.Stats.NoRoom++
	case qp.BadReceive, qp.Revoked:
		p.QP.FlushForReceive()
	}
}

// Failed implements qp.Carrier. If only a send failed, sending stops, but frames still arrive, as with type UD.
func (p *Pair) Failed() {
	if p.QP != nil && p.QP.State() != abi.QPSErr {
		p.QP.StopSends()
	}
}

// Faulted implements qp.Carrier: a receive is in use only while a frame is copied to it.
func (p *Pair) Faulted() bool {
	active, _ := p.QP.Recv.Active()
	return active
}

// Detach implements qp.Carrier.
func (p *Pair) Detach() {
	if p.QP != nil {
		p.QP.Detach()
		p.QP = nil
	}
}

// Serving implements qp.Carrier: there are no Reads.
func (p *Pair) Serving() int { return 0 }
