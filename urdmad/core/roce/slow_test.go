package roce_test

import (
	"syscall"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
)

// TestSlowProgram: a program may take minutes to answer, but only as long as its host confirms the request.
func TestSlowProgram(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 8, RoCE: true, ConnectTimeout: 3 * time.Second})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	cb.Listen(7000, 4)
	ca.Connect(ca.Resolve(w.B.Addr, 7000), ca.NewQP(nil), enginetest.Param(1, ""))
	cb.Event(cm.EventConnectRequest, time.Second)
	w.Pass(5 * time.Minute)
	ca.NoEvent()
	w.SetPath(linked.Path{Drop: func(uint64, []byte) bool { return true }}) // the host is switched off
	if ev := ca.Event(cm.EventUnreachable, 10*time.Second); ev.Err != syscall.ETIMEDOUT {
		t.Errorf("ended with %v", ev.Err)
	}
}
