package qp_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestOverrun: a completion queue that is full loses completions; its queue
// pairs fail, the client hears of both, and nobody else suffers.
func TestOverrun(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 5})
		c := w.A.NewClient()
		small, recv := c.NewCQ(4), c.NewCQ(64)
		a, a2 := c.NewQPOn(&enginetest.DefaultCap, small, recv), c.NewQPOn(&enginetest.DefaultCap, c.NewCQ(64), small)
		other := w.B
		if local {
			other = w.A
		}
		b, b2 := other.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
		enginetest.Join(a, b, 16)
		enginetest.Join(a2, b2, 16)
		mine, peer := c.Register(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
		for i := range uint64(10) {
			a.Post(enginetest.Write(i, peer, 0), mine.SGE(0, 3000))
			a2.PostRecv(100 + i)
		}
		w.Pass(20 * time.Millisecond)
		if a.Q.State() != abi.QPSErr || a2.Q.State() != abi.QPSErr {
			t.Errorf("states %d and %d, expected error", a.Q.State(), a2.Q.State())
		}
		if got := small.Poll(); len(got) != 4 || got[3].WRID != 3 {
			t.Errorf("completions %+v, expected the first four", got)
		}
		if !small.Ring.Overrun() {
			t.Error("the ring does not say that completions were lost")
		}
		kinds := map[uint32]int{}
		for _, ev := range c.AsyncEvents() {
			kinds[ev.EventType]++
		}
		if kinds[abi.EventCQErr] != 1 || kinds[abi.EventQPFatal] != 2 {
			t.Errorf("asynchronous events %v", kinds)
		}
		if got := a.Ring.SQ.Free(); got != 64-6 {
			t.Errorf("%d of 64 send slots are free, expected all but those whose completions were lost", got)
		}
		c.Event(abi.CMDisconnected, time.Second)
		c.Event(abi.CMDisconnected, time.Second)
		b.Client.Event(abi.CMDisconnected, time.Second)
		w.Pass(3 * time.Second)
		w.CheckQuiet()
	})
}
