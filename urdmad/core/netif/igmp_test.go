package netif_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestIGMP: the first member and the last one's leaving are reported on the link, and queries are answered.
func TestIGMP(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	heard := map[wire.IGMPType]int{}
	u.Net.Trace(func(ev linked.Event) {
		var f wire.Frame
		var g wire.IGMP
		if ev.What == linked.Sent && f.Parse(ev.Frame, len(ev.Frame)) == nil && f.Proto == wire.ProtoIGMP &&
			g.Parse(ev.Frame[f.PayloadOff:]) {
			if g.Group == enginetest.Group {
				heard[g.Type]++
			}
		}
	})
	second := u.QA.Client.NewDatagramQP(enginetest.QKey)
	u.QA.Attach(enginetest.Group)
	second.Attach(enginetest.Group)
	u.Pass(time.Second)
	if heard[wire.IGMPReport] != 1 {
		t.Errorf("heard %v of the first member", heard)
	}
	s := u.Stranger()
	query := make([]byte, wire.IGMPFrameLen)
	(&wire.IGMP{Type: wire.IGMPQuery, Group: enginetest.Group}).Put(query, wire.MAC{2, 9, 9, 9, 9, 9},
		wire.IPv4{10, 0, 0, 99})
	s.SendFrame(query)
	u.Pass(time.Millisecond)
	if heard[wire.IGMPReport] != 2 {
		t.Errorf("heard %v after a query", heard)
	}
	u.World.A.Do(func() {
		u.World.A.Engine.Datagrams.Forget(u.QA.Q)
		u.World.A.Engine.Datagrams.Forget(second.Q)
	})
	u.Pass(time.Millisecond)
	if heard[wire.IGMPLeave] != 1 {
		t.Errorf("heard %v of the end", heard)
	}
}

// TestIGMPFlood: for any number of queries, each group is reported at most twice a second, and a few groups in a
// turn.
func TestIGMPFlood(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	const groups = 500
	for q := (*enginetest.QP)(nil); u.World.A.Engine.Interface(0).Groups() < groups; {
		n := u.World.A.Engine.Interface(0).Groups()
		if n%datagram.MaxGroups == 0 {
			q = u.QA.Client.NewDatagramQP(enginetest.QKey)
		}
		q.Attach(wire.IPv4{239, 1, byte(n >> 8), byte(n)})
	}
	u.Pass(2 * time.Second)
	s := u.Stranger()
	reports, burst, most, turn := 0, 0, 0, u.Now()
	u.Net.Trace(func(ev linked.Event) {
		var f wire.Frame
		if ev.What != linked.Sent || f.Parse(ev.Frame, len(ev.Frame)) != nil || f.Proto != wire.ProtoIGMP ||
			f.SrcIP != u.World.A.IP {
			return
		}
		if now := u.World.A.Engine.Now(); now != turn {
			turn, burst = now, 0
		}
		reports, burst = reports+1, burst+1
		most = max(most, burst)
	})
	query := make([]byte, wire.IGMPFrameLen)
	ask := func(group wire.IPv4) {
		(&wire.IGMP{Type: wire.IGMPQuery, Group: group}).Put(query, wire.MAC{2, 9, 9, 9, 9, 9}, wire.IPv4{10, 0, 0, 99})
		copy(query[wire.EthernetLen+16:], []byte{224, 0, 0, 1})
		query[wire.EthernetLen+10], query[wire.EthernetLen+11] = 0, 0
		sum := ^wire.Fold(wire.Checksum(0, query[wire.EthernetLen:wire.EthernetLen+wire.IPv4Len+4]))
		query[wire.EthernetLen+10], query[wire.EthernetLen+11] = byte(sum>>8), byte(sum)
		s.SendFrame(query)
	}
	for range 100 {
		ask(wire.IPv4{})
		ask(wire.IPv4{239, 1, 0, 7})
		u.Pass(4 * time.Millisecond)
	}
	if reports != groups || most > 64 {
		t.Errorf("%d reports of %d groups in 0.4 seconds, %d at once", reports, groups, most)
	}
	u.Pass(time.Second)
	reports = 0
	ask(wire.IPv4{239, 1, 0, 7})
	u.Pass(time.Second)
	if reports != 1 {
		t.Errorf("%d reports of the one group that was asked for later", reports)
	}
}
