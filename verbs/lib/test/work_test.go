package test

import (
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Flags in a work request's wr_id for the fake urdmad.
const (
	wrHold      = 1 << 63 // stay outstanding, with all later ones
	wrDie       = 1 << 62 // urdmad dies
	wrReborn    = 1 << 61 // urdmad dies and another starts
	wrLateEvent = 1 << 60 // first send an event of a destroyed queue
	wrAsync     = 1 << 59 // an asynchronous event of this queue pair
	wrOverrun   = 1 << 58 // the completion queue overruns
	wrDieLate   = 1 << 57 // urdmad dies after it has moved its index and before the completion
)

type bells = ring.ServerBells

func newBells(mem []byte, worker int) *bells {
	b := &bells{}
	b.Init(mem, worker)
	b.SetYield(1, 1, 0)
	return b
}

// work looks at the rings when a doorbell rang. Every second time it sets sleeping and waits for the kick, so
// a lost kick shows as a hang.
//
// It closes the kick's socket itself. If another goroutine closed it, its number could be reused by the next
// session between waitForKick's poll and its read, which would then take that session's kick.
func (s *session) work() {
	defer func() {
		<-s.stop // hangUp shuts the socket down first
		unix.Close(s.kick)
	}()
	for turn := 0; ; turn++ {
		select {
		case <-s.stop:
			return
		default:
		}
		if s.bells.Summary() != 0 || s.again.Load() {
			s.again.Store(false)
			for i := range 64 {
				s.bells.Word(i)
			}
			s.d.mu.Lock()
			s.serveRings()
			s.d.mu.Unlock()
			continue
		}
		if turn%2 == 0 {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		s.bells.SetSleeping(true)
		if !s.bells.Rung() && !s.waitForKick() {
			return
		}
		s.bells.SetSleeping(false)
	}
}

func (s *session) waitForKick() bool {
	var buf [16]byte
	for {
		select {
		case <-s.stop:
			return false
		default:
		}
		p := []unix.PollFd{{Fd: int32(s.kick), Events: unix.POLLIN}}
		if n, _ := unix.Poll(p, 100); n > 0 {
			n, err := unix.Read(s.kick, buf[:])
			return err == nil && n > 0
		}
	}
}

func (s *session) serveRings() {
	for _, o := range s.objects {
		if qp, ok := o.(*qpObject); ok && !s.ended {
			s.serveQP(qp)
		}
	}
}

// serveQP completes sends; a send operation also completes the oldest receive of the same queue pair.
// byte_len is the length in the slot.
func (s *session) serveQP(qp *qpObject) {
	var sqe abi.SQE
	var sges [16]abi.SGE
	prod, err := qp.ring.SQ.Prod(qp.sq)
	if err != nil {
		s.d.t.Error(err)
		return
	}
	for qp.sq != prod {
		if qp.send.ring.Pending()+1 >= qp.send.ring.Capacity() {
			s.again.Store(true) // the program polls too slowly: try again later
			return
		}
		qp.ring.SQ.Read(qp.sq, &sqe, sges[:])
		switch {
		case sqe.WRID&wrHold != 0:
			return
		case sqe.WRID&(wrDie|wrReborn) != 0:
			go func() {
				if sqe.WRID&wrReborn != 0 {
					s.d.reborn()
				} else {
					s.d.die()
				}
			}()
			return
		case sqe.WRID&wrDieLate != 0:
			qp.ring.SQ.PublishCons(qp.sq + 1)
			if prod, _ := qp.ring.RQ.Prod(qp.rq); sqe.Opcode == abi.WRSend && prod != qp.rq {
				qp.ring.RQ.PublishCons(qp.rq + 1)
			}
			go s.d.die()
			return
		}
		qp.sq++
		qp.ring.SQ.PublishCons(qp.sq)
		s.completeOne(qp, &sqe, length(&sqe, sges[:]))
	}
}

func length(sqe *abi.SQE, sges []abi.SGE) (n uint32) {
	if sqe.Flags&abi.SendInline != 0 {
		return sqe.InlineLength
	}
	for i := range sqe.NumSGE {
		n += sges[i].Length
	}
	return n
}

func (s *session) completeOne(qp *qpObject, sqe *abi.SQE, n uint32) {
	if sqe.WRID&wrLateEvent != 0 {
		s.event(qp.send, 0xdead)
	}
	if sqe.WRID&wrAsync != 0 {
		e := abi.AsyncEvent{EventType: abi.EventQPFatal, Handle: qp.handle}
		unix.Send(qp.send.context.async, abi.Bytes(&e), unix.MSG_DONTWAIT)
	}
	if sqe.WRID&wrOverrun != 0 {
		qp.send.ring.MarkOverrun()
		return
	}
	if sqe.Opcode == abi.WRSend || sqe.Opcode == abi.WRSendWithInv {
		s.receive(qp, sqe, n)
	}
	if sqe.Flags&abi.SendSignaled != 0 || qp.sigAll {
		s.push(qp.send, &abi.CQE{WRID: sqe.WRID, Opcode: map[uint32]uint32{abi.WRRDMAWrite: abi.WCRDMAWrite,
			abi.WRRDMARead: abi.WCRDMARead}[sqe.Opcode], QPNum: qp.response.QPN, ByteLen: n,
			Timestamp: 12345, UserHandle: qp.user, Index: qp.sq - 1}, false)
	}
}

func (s *session) receive(qp *qpObject, sqe *abi.SQE, n uint32) {
	var rqe abi.RQE
	if prod, _ := qp.ring.RQ.Prod(qp.rq); prod == qp.rq {
		return
	}
	qp.ring.RQ.Read(qp.rq, &rqe, nil)
	qp.rq++
	qp.ring.RQ.PublishCons(qp.rq)
	e := abi.CQE{WRID: rqe.WRID, Opcode: abi.WCRecv, QPNum: qp.response.QPN, ByteLen: n,
		UserHandle: qp.user, Index: qp.rq - 1}
	if sqe.Opcode == abi.WRSendWithInv {
		e.WCFlags, e.ImmOrSTag = 8, sqe.ImmOrSTag // IBV_WC_WITH_INV
	}
	s.push(qp.recv, &e, sqe.Flags&4 != 0) // IBV_SEND_SOLICITED
}

func (s *session) push(cq *cqObject, e *abi.CQE, solicited bool) {
	if !cq.ring.Push(e) {
		s.d.t.Error("completion queue full")
	}
	if cq.ring.TakeArm(solicited) {
		s.event(cq, cq.handle)
	}
}

func (s *session) event(cq *cqObject, handle uint32) {
	if cq.channel == nil {
		return
	}
	e := abi.CompEvent{CQ: handle}
	if err := unix.Send(cq.channel.fd, abi.Bytes(&e), unix.MSG_DONTWAIT); err != nil {
		s.d.t.Error(err)
	}
}
