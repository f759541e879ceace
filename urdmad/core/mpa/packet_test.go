package mpa_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/handshake"
)

// TestRequestByPacket: a connection request that arrives as a packet, and may be forged, is rejected where ids connect
// over TCP. No program sees it.
func TestRequestByPacket(t *testing.T) {
	w := world(t, enginetest.Options{})
	b := w.B.NewClient()
	b.Listen(port, 8)
	q := w.A.NewClient().NewQP(nil)
	w.A.Do(func() {
		m := &handshake.Message{Kind: handshake.Request, Link: w.A.Engine.Interface(0).Link(),
			Local: netip.AddrPortFrom(w.A.Addr, 5000), Peer: netip.AddrPortFrom(w.B.Addr, port)}
		c, err := w.A.Engine.TRP.Open(0, m.Local.Port(), m.Peer)
		if err != nil {
			t.Fatal(err)
		}
		c.SendMessage(m, q.Q)
		c.Release()
	})
	w.Pass(time.Second)
	b.NoEvent()
}
