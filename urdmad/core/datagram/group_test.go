package datagram_test

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestGroup: each member except the sender gets a copy, on its own host and on others; queue pairs that are
// no members, or have another Q_Key, get none.
func TestGroup(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	near := u.World.A.NewClient().NewDatagramQP(enginetest.QKey)
	stranger := u.World.B.NewClient().NewDatagramQP(enginetest.QKey)
	other := u.World.B.NewClient().NewDatagramQP(enginetest.QKey + 1)
	mn := near.Client.Register(4096, enginetest.ReadWrite)
	for _, q := range []*enginetest.QP{u.QA, u.QB, near, other} {
		q.Attach(enginetest.Group)
		q.Attach(enginetest.Group) // a second time changes nothing
	}
	u.QA.PostRecv(1, u.MA.SGE(8192, 2000))
	near.PostRecv(2, mn.SGE(0, 2000))
	u.QB.PostRecv(3, u.MB.SGE(0, 2000))
	u.Send(enginetest.ToGroup(9), 700)
	for _, m := range []struct {
		q *enginetest.QP
		r *enginetest.Region
	}{{near, mn}, {u.QB, u.MB}} {
		e := m.q.Recv.Completions(1)[0]
		if e.Status != 0 || e.ByteLen != 740 || e.SrcQP != u.QA.Q.QPN || !bytes.Equal(m.r.Bytes[40:740], u.MA.Bytes[:700]) {
			t.Errorf("%+v", e)
		}
		if !bytes.Equal(m.r.Bytes[36:40], enginetest.Group[:]) {
			t.Errorf("the header says it was for % x", m.r.Bytes[36:40])
		}
	}
	u.Pass(time.Millisecond)
	for _, q := range []*enginetest.QP{u.QA, stranger, other} {
		if got := q.Recv.Poll(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	}
	if s := u.Stats(); s.WrongQKey != 1 {
		t.Errorf("%+v", s)
	}
}

// TestGroupDetached: a queue pair that was detached, or has no receive, gets nothing and does not affect
// others; detaching twice is an error, and a destroyed queue pair is removed.
func TestGroupDetached(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		u.QB.Attach(enginetest.Group)
		second := u.QB.Client.NewDatagramQP(enginetest.QKey)
		second.Attach(enginetest.Group) // never posts a receive
		h := u.QB.Client.Host
		u.QB.PostRecv(1, u.MB.SGE(0, 2000))
		u.Send(enginetest.ToGroup(1), 10)
		u.QB.Recv.Completions(1)
		u.QB.PostRecv(2, u.MB.SGE(0, 2000))
		h.Do(func() {
			for i, want := range []error{nil, syscall.EINVAL} {
				if err := h.Engine.Datagrams.Detach(u.QB.Q, 0, netip.AddrFrom4(enginetest.Group)); err != want {
					t.Errorf("leaving %d: %v", i, err)
				}
			}
			h.Engine.Datagrams.Forget(second.Q)
			if n := h.Engine.Datagrams.Attached(second.Q); n != 0 {
				t.Errorf("attached %d times", n)
			}
		})
		u.Send(enginetest.ToGroup(2), 10)
		u.Pass(time.Millisecond)
		if got := u.QB.Recv.Poll(); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestGroupLimits: addresses that are no groups, and more groups than a queue pair may have.
func TestGroupLimits(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	s := u.World.A.Engine.Datagrams
	u.World.A.Do(func() {
		if err := s.Attach(u.QA.Q, 0, netip.MustParseAddr("10.0.0.9")); err != syscall.EINVAL {
			t.Error(err)
		}
		for i := range datagram.MaxGroups + 1 {
			err := s.Attach(u.QA.Q, 0, netip.AddrFrom4(wire.IPv4{239, 0, 0, byte(i)}))
			if (err == nil) != (i < datagram.MaxGroups) {
				t.Errorf("group %d: %v", i, err)
			}
		}
		s.Forget(u.QA.Q)
	})
}
