package engine_test

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/datagram"
	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

var group = wire.IPv4{239, 1, 2, 3}

func attach(t *testing.T, q *enginetest.QP, g wire.IPv4) {
	t.Helper()
	q.Client.Host.Do(func() {
		if err := q.Client.Host.Engine.Datagrams.Attach(q.Q, 0, netip.AddrFrom4(g)); err != nil {
			t.Error(err)
		}
	})
}

// toGroup is a Send to the group.
func toGroup(id uint64) abi.SQE {
	return enginetest.To(enginetest.Send(id), netip.AddrFrom4(group), 0xffffff, qkey)
}

// TestGroup: each member but the sender gets a copy, on its host and on others;
// who isn't one, or has another Q_Key, gets none.
func TestGroup(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	near := u.World.A.NewClient().NewDatagramQP(qkey)
	stranger := u.World.B.NewClient().NewDatagramQP(qkey)
	other := u.World.B.NewClient().NewDatagramQP(qkey + 1)
	mn := near.Client.Register(4096, rw)
	for _, q := range []*enginetest.QP{u.a, u.b, near, other} {
		attach(t, q, group)
		attach(t, q, group) // a second time changes nothing
	}
	u.a.PostRecv(1, u.ma.SGE(8192, 2000))
	near.PostRecv(2, mn.SGE(0, 2000))
	u.b.PostRecv(3, u.mb.SGE(0, 2000))
	u.send(toGroup(9), 700)
	for _, m := range []struct {
		q *enginetest.QP
		r *enginetest.Region
	}{{near, mn}, {u.b, u.mb}} {
		e := completions(u.World, m.q.Recv, 1)[0]
		if e.Status != 0 || e.ByteLen != 740 || e.SrcQP != u.a.Q.QPN || !bytes.Equal(m.r.Bytes[40:740], u.ma.Bytes[:700]) {
			t.Errorf("%+v", e)
		}
		if !bytes.Equal(m.r.Bytes[36:40], group[:]) {
			t.Errorf("the header says it was for % x", m.r.Bytes[36:40])
		}
	}
	u.Pass(time.Millisecond)
	for _, q := range []*enginetest.QP{u.a, stranger, other} {
		if got := q.Recv.Poll(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	}
	if s := u.stats(); s.WrongQKey != 1 {
		t.Errorf("%+v", s)
	}
}

// TestGroupDetached: who has left, or has no receive, gets nothing and hinders nobody;
// leaving twice is an error, and a queue pair that goes is forgotten.
func TestGroupDetached(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		attach(t, u.b, group)
		second := u.b.Client.NewDatagramQP(qkey)
		attach(t, second, group) // never posts a receive
		h := u.b.Client.Host
		u.b.PostRecv(1, u.mb.SGE(0, 2000))
		u.send(toGroup(1), 10)
		completions(u.World, u.b.Recv, 1)
		u.b.PostRecv(2, u.mb.SGE(0, 2000))
		h.Do(func() {
			for i, want := range []error{nil, syscall.EINVAL} {
				if err := h.Engine.Datagrams.Detach(u.b.Q, 0, netip.AddrFrom4(group)); err != want {
					t.Errorf("leaving %d: %v", i, err)
				}
			}
			h.Engine.Datagrams.Forget(second.Q)
			if n := h.Engine.Datagrams.Attached(second.Q); n != 0 {
				t.Errorf("attached %d times", n)
			}
		})
		u.send(toGroup(2), 10)
		u.Pass(time.Millisecond)
		if got := u.b.Recv.Poll(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestGroupLimits: what is no group, and more groups than a queue pair can have.
func TestGroupLimits(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	s := u.World.A.Engine.Datagrams
	u.World.A.Do(func() {
		if err := s.Attach(u.a.Q, 0, netip.MustParseAddr("10.0.0.9")); err != syscall.EINVAL {
			t.Error(err)
		}
		for i := range datagram.MaxGroups + 1 {
			err := s.Attach(u.a.Q, 0, netip.AddrFrom4(wire.IPv4{239, 0, 0, byte(i)}))
			if (err == nil) != (i < datagram.MaxGroups) {
				t.Errorf("group %d: %v", i, err)
			}
		}
		s.Forget(u.a.Q)
	})
}

// TestIGMP: the link hears of the first member and of the last one's leaving, and a
// query is answered.
func TestIGMP(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	heard := map[wire.IGMPType]int{}
	u.Net.Trace(func(ev linked.Event) {
		var f wire.Frame
		var g wire.IGMP
		if ev.What == linked.Sent && f.Parse(ev.Frame, len(ev.Frame)) == nil && f.Proto == wire.ProtoIGMP && g.Parse(ev.Frame[f.PayloadOff:]) {
			if g.Group == group {
				heard[g.Type]++
			}
		}
	})
	second := u.a.Client.NewDatagramQP(qkey)
	attach(t, u.a, group)
	attach(t, second, group)
	u.Pass(time.Second)
	if heard[wire.IGMPReport] != 1 {
		t.Errorf("heard %v of the first member", heard)
	}
	s := u.Stranger()
	query := make([]byte, wire.IGMPFrameLen)
	(&wire.IGMP{Type: wire.IGMPQuery, Group: group}).Put(query, wire.MAC{2, 9, 9, 9, 9, 9}, wire.IPv4{10, 0, 0, 99})
	s.SendFrame(query)
	u.Pass(time.Millisecond)
	if heard[wire.IGMPReport] != 2 {
		t.Errorf("heard %v after a query", heard)
	}
	u.World.A.Do(func() {
		u.World.A.Engine.Datagrams.Forget(u.a.Q)
		u.World.A.Engine.Datagrams.Forget(second.Q)
	})
	u.Pass(time.Millisecond)
	if heard[wire.IGMPLeave] != 1 {
		t.Errorf("heard %v of the end", heard)
	}
}
