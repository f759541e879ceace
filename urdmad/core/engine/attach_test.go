package engine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestBadPostsBeforeConnecting: a client whose ring is wrong already when its
// queue pair is connected ends that connection like any other; its peer, who did
// nothing wrong, hears of both.
func TestBadPostsBeforeConnecting(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, active := range []bool{true, false} {
			w := enginetest.New(t, enginetest.Options{Seed: 95})
			other := w.B
			if local {
				other = w.A
			}
			a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
			bad, victim := b, a
			if active {
				bad, victim = a, b
			}
			bad.Hostile = true
			binary.NativeEndian.PutUint32(bad.Mem, 1<<30) // the producer index
			b.Client.Listen(7000, 4)
			id := a.Client.Resolve(b.Client.Host.Addr, 7000)
			a.Client.Connect(id, a, enginetest.Param(1, ""))
			ev := b.Client.Event(cm.EventConnectRequest, time.Second)
			b.Client.Accept(ev.Child, b, enginetest.Param(1, ""))
			if local { // on the wire the end may overtake the connection
				victim.Client.Event(cm.EventEstablished, time.Second)
				victim.Client.Event(cm.EventDisconnected, 5*time.Second)
			}
			w.Pass(time.Second)
			if bad.Q.State() != abi.QPSErr || victim.Q.State() != abi.QPSErr {
				t.Errorf("the active side is wrong: %v: states %d and %d, expected error", active, bad.Q.State(), victim.Q.State())
			}
		}
	})
}
