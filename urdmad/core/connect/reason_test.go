package connect_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/handshake"
)

// TestWhyRefused: the requester learns whether there is no listener or the program refuses, with every wire
// protocol.
func TestWhyRefused(t *testing.T) {
	for name, o := range map[string]enginetest.Options{"TRP": {Seed: 30}, "RoCEv2": {Seed: 30, RoCE: true}} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, o)
				ca, cb := ends(w, local)
				cb.Listen(7001, 4)
				cb.Listen(7002, 4).Datagrams = true
				for _, datagrams := range []bool{false, true} {
					kind, want := cm.EventRejected, map[uint16]uint16{7000: handshake.InvalidService, 7001: handshake.ByConsumer,
						7002: handshake.InvalidService}
					if datagrams {
						kind, want = cm.EventUnreachable, map[uint16]uint16{7000: 1, 7001: 1, 7002: 2} // status of SIDR_REP
					}
					for port, reason := range want {
						id := ca.Resolve(cb.Host.Addr, port)
						if id.Datagrams = datagrams; datagrams {
							ask(t, ca, id, "")
						} else {
							ca.Connect(id, ca.NewQP(nil), enginetest.Param(1, ""))
						}
						if reason == handshake.ByConsumer || reason == 2 {
							ev := cb.Event(cm.EventConnectRequest, time.Second)
							cb.Host.Do(func() { _ = cb.Host.CM.Reject(ev.Child, nil) })
						}
						if ev := ca.Event(kind, time.Second); ev.Reason != reason {
							t.Errorf("port %d, datagrams %t: reason %d, expected %d", port, datagrams, ev.Reason, reason)
						}
					}
				}
			})
		})
	}
}
