package roce_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/netif"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// secondPort gives host A a port in another network, and returns the other end.
func secondPort(w *enginetest.World, t *testing.T) (dev int, other *linked.Port) {
	misuse := func(what string) { t.Errorf("port misuse: %s", what) }
	network := linked.New(1)
	w.Intrude = func() { network.Advance(int64(w.Now())) }
	ours, other := network.Pair(linked.Options{Name: "c", Misuse: misuse}, linked.Options{Name: "d", Misuse: misuse},
		linked.Path{}, linked.Path{})
	w.A.Do(func() {
		dev = w.A.Engine.AddPort(ours, netif.Address{Prefix: netip.MustParsePrefix("10.0.0.77/8")})
		w.A.Engine.SpeakRoCE(dev)
	})
	return dev, other
}

// TestSameAddressElsewhere: if hosts in two networks have the same address, communication IDs and queue pair numbers,
// one is not taken for the other.
func TestSameAddressElsewhere(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4, RoCE: true, NoCapture: true})
	dev, other := secondPort(w, t)
	var asked ibcm.Message // by host B
	w.SetPath(linked.Path{Drop: func(_ uint64, frame []byte) bool {
		if m, ok := managed(frame); ok && m.Kind == ibcm.REQ {
			asked = m
			asked.Private = append([]byte(nil), m.Private...)
		}
		return false
	}})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	ca.ListenAt(netip.IPv4Unspecified(), 7000, 4)
	first, peer := ca.NewQP(nil), cb.NewQP(nil)
	cb.Connect(cb.Resolve(w.A.Addr, 7000), peer, enginetest.Param(1, ""))
	ca.Accept(ca.Event(cm.EventConnectRequest, time.Second).Child, first, enginetest.Param(1, ""))
	ca.Event(cm.EventEstablished, time.Second)

	const heads = roce.BTHLen + 8
	say := func(m *ibcm.Message) {
		b := make([]byte, heads+ibcm.Len+roce.ICRCLen)
		h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey, Src: ibcm.QP}
		if err := m.Put(b[h.Put(b):]); err != nil {
			t.Fatal(err)
		}
		var u wire.UDPHeader
		u.Init(wire.MAC(other.Info().MAC), w.A.Engine.Interface(dev).MAC(), w.B.IP, wire.IPv4{10, 0, 0, 77}, roce.Port,
			roce.Port)
		frame := make([]byte, wire.UDPHeaderLen+len(b))
		u.Put(frame, len(b), 0)
		copy(frame[wire.UDPHeaderLen:], b)
		var sums roce.Sums
		sums.Put(frame[wire.EthernetLen:wire.UDPHeaderLen], frame[wire.UDPHeaderLen:])
		wire.SetUDPChecksum(frame)
		other.Inject(frame)
		w.Pass(time.Millisecond)
	}
	say(&asked)
	ev := ca.Event(cm.EventConnectRequest, time.Second)
	if ev.Dev != dev {
		t.Fatalf("a request at device %d, expected one at %d", ev.Dev, dev)
	}
	ca.Accept(ev.Child, ca.NewQP(nil), enginetest.Param(1, ""))
	var reply ibcm.Message
	var got [16]port.Packet
	for n := other.Queue(0).Rx(got[:]); n > 0; n = other.Queue(0).Rx(got[:]) {
		for i := range got[:n] {
			if m, ok := managed(got[i].Data); ok && m.Kind == ibcm.REP {
				reply = m
			}
		}
		other.Queue(0).Free(got[:n])
	}
	if reply.Kind != ibcm.REP {
		t.Fatal("no reply was seen")
	}
	say(&ibcm.Message{Kind: ibcm.RTU, TID: reply.TID, Local: asked.Local, Remote: reply.Local})
	ca.Event(cm.EventEstablished, time.Second)
	w.Pass(time.Second)
	if ca.NoEvent(); first.Q.State() != abi.QPSRTS {
		t.Errorf("the connection with the other network's host has ended: state %d", first.Q.State())
	}
}
