package qp_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// lateEvents keeps every completion event back. Nobody asks it anything else.
type lateEvents struct {
	qp.Faults
	by clock.Time
}

func (f lateEvents) Notify(*qp.CQ) (late, again clock.Time)    { return f.by, 0 }
func (f lateEvents) Send(*qp.QP, uint32, uint32) uint32        { return abi.StatusSuccess }
func (f lateEvents) Misfit(*qp.QP, int, uint32) uint32         { return abi.StatusSuccess }
func (f lateEvents) Receive(*qp.QP) uint32                     { return abi.StatusSuccess }
func (f lateEvents) Respond(*qp.QP, qp.Message) (v qp.Verdict) { return v }

// TestOneLateEvent: of a queue one completion event is kept back at a time, however often its
// program arms, and none of a queue that is gone.
func TestOneLateEvent(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 61})
	a, b := w.Pair(false, nil)
	a.Client.E.Faults = lateEvents{by: 10 * clock.Second}
	mem, sink := a.Client.Register(8, enginetest.ReadWrite), b.Client.Register(8, enginetest.ReadWrite)
	cq := a.Q.SendCQ
	for range 5 {
		a.Send.Ring.Arm(false)
		a.Post(enginetest.Write(1, sink, 0), mem.SGE(0, 8))
		a.Send.Completions(1)
	}
	if cq.Events != 0 {
		t.Fatalf("%d events before their time", cq.Events)
	}
	w.Pass(11 * time.Second)
	if cq.Events != 1 {
		t.Errorf("%d events, expected 1", cq.Events)
	}
	a.Send.Ring.Arm(false)
	a.Post(enginetest.Write(1, sink, 0), mem.SGE(0, 8))
	a.Send.Completions(1)
	w.A.Engine.QPs.EndLate(cq)
	w.Pass(11 * time.Second)
	if cq.Events != 1 {
		t.Errorf("%d events, expected 1: the queue is gone", cq.Events)
	}
}
