package engine_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestRenumber: a port's connections end with its address, and say so; whoever listens
// there is reached at the new one, and by no means at the old one.
func TestRenumber(t *testing.T) {
	for _, o := range []enginetest.Options{{}, {IPv6: true}, {RoCE: true}} {
		o.Seed = 28
		w := enginetest.New(t, o)
		b, none := w.B.NewClient(), netip.IPv4Unspecified()
		if o.IPv6 {
			none = netip.IPv6Unspecified()
		}
		b.ListenAt(none, 7000, 4)
		connect := func(to netip.Addr) (active, passive *enginetest.QP) {
			active, passive = w.A.NewClient().NewQP(nil), b.NewQP(nil)
			id := active.Client.Resolve(to, 7000)
			active.Client.Connect(id, active, enginetest.Param(1, ""))
			b.Accept(b.Event(cm.EventConnectRequest, time.Second).Child, passive, enginetest.Param(1, ""))
			active.Client.Event(cm.EventEstablished, time.Second)
			b.Event(cm.EventEstablished, time.Second)
			return active, passive
		}
		renumber := func(to netip.Prefix) {
			w.B.Do(func() {
				w.B.Engine.Renumber(0, to)
				w.B.Numbers.Renumber(0, to.Addr())
			})
			w.Pass(2 * time.Second) // and what the link is told, and duplicate address detection
		}
		bits := w.B.Addr.BitLen() - 8
		next := w.B.Addr.Next().Next()
		_, passive := connect(w.B.Addr)
		old := w.B.Addr
		renumber(netip.PrefixFrom(old, bits-1)) // the network's length alone
		if passive.Q.State() != abi.QPSRTS {
			t.Fatalf("%+v: the queue pair is in state %d", o, passive.Q.State())
		}
		renumber(netip.PrefixFrom(next, bits))
		if passive.Q.State() != abi.QPSErr || passive.Q.Why() != reason.AddressGone {
			t.Errorf("%+v: the queue pair is in state %d, because of %v", o, passive.Q.State(), passive.Q.Why())
		}
		b.Event(cm.EventDisconnected, time.Second)
		connect(next)
		late := w.A.NewClient().NewQP(nil)
		late.Client.Connect(late.Client.Resolve(old, 7000), late, enginetest.Param(1, "")) // A remembers where it was
		late.Client.Event(cm.EventUnreachable, time.Minute)
		renumber(netip.PrefixFrom(none, bits))
		if hop, ok := w.B.Engine.Interface(0).NextHop(w.A.Addr); ok {
			t.Errorf("%+v: a port without an address sends to %v", o, hop)
		}
		b.Event(cm.EventDisconnected, time.Second)
		renumber(netip.PrefixFrom(old, bits))
		connect(old)
	}
}
