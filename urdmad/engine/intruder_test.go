package engine_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/datagram"
	"urdma/urdmad/engine/enginetest"
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestForgedSources: who sends from an address that no other host can have (ours,
// of any port; loopback; a group's; none) gets no answer: programs, and urdmad's
// responder, take a peer at such an address for one of this machine.
func TestForgedSources(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 99})
	second := wire.IPv4{10, 0, 1, 1}
	w.A.Engine.AddPort(linked.OpenLoopback("second", [6]byte{2, 0, 0, 0, 0, 7}, 1500), netif.Address{Prefix: netip.PrefixFrom(netip.AddrFrom4(second), 24)})
	s := w.Stranger()
	honest := s.IP
	ask := func(from wire.IPv4) int {
		s.IP, s.Got = from, nil
		b := make([]byte, 600)
		at := (&wire.TRP{Op: wire.OpRequest, PSN: 5}).Put(b, false)
		n, err := (&wire.TRPConnect{}).Put(b[at:])
		if err != nil {
			t.Fatal(err)
		}
		s.SendFrame(s.Datagram(4000, 5000, b[:at+n]))
		w.Pass(10 * time.Millisecond)
		s.Receive()
		return len(s.Got)
	}
	if ask(honest) != 1 {
		t.Fatal("a request from the link is not answered")
	}
	forged := []wire.IPv4{{127, 0, 0, 1}, w.A.IP, second, {0, 0, 0, 0}, {224, 0, 0, 1}, {255, 255, 255, 255}}
	for _, ip := range forged {
		if n := ask(ip); n != 0 {
			t.Errorf("%d answers to a request from %v", n, ip)
		}
	}
	if n := w.A.Engine.Interface(0).Stats.Dropped[netif.DropSource]; n != uint64(len(forged)) {
		t.Errorf("%d packets dropped for their source, expected %d", n, len(forged))
	}
}

// TestIGMPFlood: however many queries come, each group is reported twice a second
// at most, and a few in a turn.
func TestIGMPFlood(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	const groups = 500
	for q := (*enginetest.QP)(nil); u.World.A.Engine.Interface(0).Groups() < groups; {
		n := u.World.A.Engine.Interface(0).Groups()
		if n%datagram.MaxGroups == 0 {
			q = u.a.Client.NewDatagramQP(qkey)
		}
		attach(t, q, wire.IPv4{239, 1, byte(n >> 8), byte(n)})
	}
	u.Pass(2 * time.Second)
	s := u.Stranger()
	reports, burst, most, turn := 0, 0, 0, u.Now()
	u.Net.Trace(func(ev linked.Event) {
		var f wire.Frame
		if ev.What != linked.Sent || f.Parse(ev.Frame, len(ev.Frame)) != nil || f.Proto != wire.ProtoIGMP || f.SrcIP != u.World.A.IP {
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

// TestDatagramsToNowhere: who sends to ever more addresses behind a gateway that
// doesn't answer has no more than so many of them asked for.
func TestDatagramsToNowhere(t *testing.T) {
	u := newUD(t, false, enginetest.Options{Gateway: netip.MustParseAddr("10.0.0.77")})
	const addresses = 10_000
	for i := range addresses {
		for u.a.Ring.SQ.Free() == 0 {
			u.Pass(5 * time.Microsecond)
			u.a.Send.Poll()
		}
		to := wire.IPv4{11, 0, byte(i >> 8), byte(i)}
		u.a.Post(enginetest.To(enginetest.Send(1), netip.AddrFrom4(to), 5, qkey), u.ma.SGE(0, 8))
	}
	u.Pass(5 * time.Microsecond)
	if n := u.World.A.Engine.Datagrams.Stats.NeighbourWait; n < addresses/2 {
		t.Errorf("%d of %d messages dropped because too many wait", n, addresses)
	}
	u.Pass(3 * time.Second) // nobody answers
	u.a.Send.Poll()
	u.b.PostRecv(1, u.mb.SGE(0, 100))
	u.a.Post(u.toB(2), u.ma.SGE(0, 8))
	completions(u.World, u.b.Recv, 1)
}

// TestUCOverrunByItself: a message between two queue pairs of one client that
// overruns the completion queue of both ends both in the midst of it.
func TestUCOverrunByItself(t *testing.T) {
	for _, size := range []int{100, 600 << 10} {
		w := enginetest.New(t, enginetest.Options{Seed: 96})
		c := w.A.NewClient()
		cq := c.NewCQ(1)
		a, b := c.NewUCOn(cq, cq), c.NewUCOn(cq, cq)
		a.Hostile, b.Hostile = true, true
		a.ToRTR(b, 7)
		b.ToRTR(a, 9)
		a.ToRTS(9)
		b.ToRTS(7)
		m := c.Register(1<<20, rw)
		for i := range uint64(16) {
			b.PostRecv(i, m.SGE(0, size))
			a.Post(enginetest.Send(i), m.SGE(0, size))
		}
		w.Pass(10 * time.Millisecond)
		if a.Q.State() != abi.QPSErr || b.Q.State() != abi.QPSErr {
			t.Fatalf("states %d and %d, expected error", a.Q.State(), b.Q.State())
		}
		if wr := a.Q.SQ.At(a.Q.SQ.Tail()); wr.Sent != 0 || wr.Mark != 0 || wr.State != qp.SendQueued {
			t.Errorf("%d bytes: a slot that nobody uses was written: %+v", size, *wr)
		}
	}
}
