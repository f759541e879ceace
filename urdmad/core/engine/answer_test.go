package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// answering has a program that answers each message of its peer's as it arrives, in the same
// turn: such a one polls by a processor of its own.
type answering struct {
	of     *qp.QP
	answer func()
}

func (a *answering) Posted(*qp.QP, uint32, uint32) {}
func (a *answering) Connected(*qp.QP)              {}
func (a *answering) WriteEnds(*qp.QP)              {}
func (a *answering) Notify(*qp.CQ) (kept bool)     { return false }

func (a *answering) Write(q *qp.QP, _ *mem.Region, _ uint64, _ []byte) qp.Verdict {
	return a.Message(q, 0, nil)
}

func (a *answering) Message(q *qp.QP, _ qp.Message, _ *qp.RecvQueue) qp.Verdict {
	if q == a.of {
		a.answer()
	}
	return qp.Verdict{}
}

// TestAcknowledgedBeforeTheAnswer: a message is acknowledged before what its receiver's program
// sends because of it, so that whoever has the answer has room for the next message
// (ib_send_lat has a send queue of one).
func TestAcknowledgedBeforeTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		o     enginetest.Options
		local bool
	}{"TRP": {}, "RoCEv2": {o: enginetest.Options{RoCE: true}}, "within a urdmad": {local: true}} {
		for message, make := range map[string]func(b *enginetest.Region) abi.SQE{
			"Send":  func(*enginetest.Region) abi.SQE { return enginetest.Send(1) },
			"Write": func(b *enginetest.Region) abi.SQE { return enginetest.Write(1, b, 0) },
		} {
			t.Run(message+" "+name, func(t *testing.T) {
				w := enginetest.New(t, c.o)
				host := w.B
				if c.local {
					host = w.A
				}
				ca, cb := w.A.NewClient(), host.NewClient()
				cq := ca.NewCQ(128)
				a, b := ca.NewQPOn(&enginetest.DefaultCap, cq, cq), cb.NewQP(nil)
				enginetest.Join(a, b, 16)
				ma, mb := ca.Register(4096, enginetest.ReadWrite), cb.Register(4096, enginetest.ReadWrite)
				host.Do(func() {
					b.Q.Client.Interceptor = &answering{b.Q, func() { b.Post(enginetest.Send(2), mb.SGE(0, 8)) }}
				})
				for i := range 20 { // from the fourth on it is ping-pong
					a.PostRecv(3, ma.SGE(0, 8))
					b.PostRecv(4, mb.SGE(0, 8))
					a.Post(make(mb), ma.SGE(0, 8))
					var got []uint64
					w.Until("the answer", time.Second, func() bool {
						for _, e := range cq.Poll() {
							got = append(got, e.WRID)
						}
						return len(got) == 2
					})
					if got[0] != 1 {
						t.Fatalf("message %d: its answer is there before it is complete", i)
					}
					b.Send.Poll()
					b.Recv.Poll()
				}
			})
		}
	}
}
