package engine_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/datagram"
	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

const qkey = 0x11111111

// ud is two queue pairs of type UD.
type ud struct {
	*enginetest.World
	t      *testing.T
	a, b   *enginetest.QP
	ma, mb *enginetest.Region
}

func newUD(t *testing.T, local bool, o enginetest.Options) *ud {
	o.Seed = 90
	u := &ud{World: enginetest.New(t, o), t: t}
	host := u.World.B
	if local {
		host = u.World.A
	}
	u.a, u.b = u.World.A.NewClient().NewDatagramQP(qkey), host.NewClient().NewDatagramQP(qkey)
	u.ma, u.mb = u.a.Client.Register(1<<16, rw), u.b.Client.Register(1<<16, rw)
	for i := range u.ma.Bytes {
		u.ma.Bytes[i] = byte(i*7 + i>>8)
	}
	return u
}

// toB is a Send to b.
func (u *ud) toB(id uint64) abi.SQE {
	return enginetest.To(enginetest.Send(id), u.b.Client.Host.Addr, u.b.Q.QPN, qkey)
}

// sends posts n bytes and expects that sender to complete.
func (u *ud) send(w abi.SQE, n int) {
	u.t.Helper()
	u.a.Post(w, u.ma.SGE(0, n))
	if e := completions(u.World, u.a.Send, 1)[0]; e.WRID != w.WRID || e.Status != abi.StatusSuccess || e.Opcode != abi.WCSend {
		u.t.Fatalf("send: %+v", e)
	}
}

// stats are those of the receiver's host.
func (u *ud) stats() datagram.Stats { return u.b.Client.Host.Engine.Datagrams.Stats }

// grh is what precedes n bytes from a.
func (u *ud) grh(n int) []byte {
	b := make([]byte, wire.GRHLen)
	wire.PutGRH(b, u.a.Client.Host.Addr, u.b.Client.Host.Addr, n)
	return b
}

// TestDatagramMessages: messages of all sizes up to the port's MTU arrive with what
// says where they come from, on all memories.
func TestDatagramMessages(t *testing.T) {
	bothMemories(t, func(t *testing.T, local bool, register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		u := newUD(t, local, enginetest.Options{})
		u.ma, u.mb = register(u.a.Client, 4096, rw), register(u.b.Client, 4096, rw)
		for i := range u.ma.Bytes {
			u.ma.Bytes[i] = byte(i * 3)
		}
		for id, size := range []int{0, 1, 39, 40, 41, 1023, 1024} {
			u.b.PostRecv(uint64(id), u.mb.SGE(0, 50), u.mb.SGE(50, 2000))
			w := u.toB(uint64(id))
			if id%2 == 1 {
				w.Opcode, w.ImmOrSTag = abi.WRSendWithImm, 0x04030201
			}
			u.send(w, size)
			e := completions(u.World, u.b.Recv, 1)[0]
			flags, imm := uint32(abi.WCGRH), uint32(0)
			if id%2 == 1 {
				flags, imm = flags|abi.WCWithImm, 0x04030201
			}
			if e.Status != 0 || e.Opcode != abi.WCRecv || int(e.ByteLen) != size+wire.GRHLen || e.SrcQP != u.a.Q.QPN || e.WCFlags != flags ||
				e.ImmOrSTag != imm || e.WRID != uint64(id) || e.SourceLID != 1 {
				t.Fatalf("%d bytes: %+v", size, e)
			}
			if !bytes.Equal(u.mb.Bytes[:40], u.grh(size)) || !bytes.Equal(u.mb.Bytes[40:40+size], u.ma.Bytes[:size]) {
				t.Fatalf("%d bytes: they differ; header % x", size, u.mb.Bytes[:40])
			}
		}
		if got := u.b.Q.Stats.BytesRecv; got != u.a.Q.Stats.BytesSent {
			t.Errorf("%d bytes counted as received, %d as sent", got, u.a.Q.Stats.BytesSent)
		}
	})
}

// TestDatagramInline: inline data is taken when it is posted.
func TestDatagramInline(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		u.b.PostRecv(1, u.mb.SGE(0, 100))
		w := u.toB(1)
		w.Flags |= abi.SendInline
		u.a.PostInline(w, []byte("hello"))
		completions(u.World, u.b.Recv, 1)
		if string(u.mb.Bytes[40:45]) != "hello" {
			t.Errorf("%q", u.mb.Bytes[40:45])
		}
	})
}

// TestDatagramDrops: what doesn't fit the receiver is dropped and counted, completes
// at its sender, and hinders nothing that follows.
func TestDatagramDrops(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for name, c := range map[string]struct {
			to    func(u *ud, w abi.SQE) abi.SQE
			count func(s *datagram.Stats) uint64
			size  int
		}{
			"unknown number": {func(u *ud, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.b.Client.Host.Addr, u.b.Q.QPN^1, qkey)
			}, func(s *datagram.Stats) uint64 { return s.NoQueuePair }, 10},
			"reliable queue pair": {func(u *ud, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.b.Client.Host.Addr, u.b.Client.NewQP(nil).Q.QPN, qkey)
			}, func(s *datagram.Stats) uint64 { return s.NoQueuePair }, 10},
			"wrong Q_Key": {func(u *ud, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.b.Client.Host.Addr, u.b.Q.QPN, qkey+1)
			}, func(s *datagram.Stats) uint64 { return s.WrongQKey }, 10},
			"no room": {func(u *ud, w abi.SQE) abi.SQE { return w }, func(s *datagram.Stats) uint64 { return s.NoRoom }, 61},
		} {
			u := newUD(t, local, enginetest.Options{})
			u.b.PostRecv(7, u.mb.SGE(0, 100))
			u.send(c.to(u, u.toB(1)), c.size)
			u.Pass(time.Millisecond)
			if s := u.stats(); c.count(&s) != 1 {
				t.Errorf("%s: %+v", name, s)
			}
			u.send(u.toB(2), 60)
			if e := completions(u.World, u.b.Recv, 1)[0]; e.WRID != 7 || e.Status != 0 || e.ByteLen != 100 {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

// TestDatagramWithoutReceive: over a wire a message without a receive is lost. Within
// one urdmad its sender waits a moment for a receiver that has received before, and
// once only until there is a receive.
func TestDatagramWithoutReceive(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		lose := func(least, most time.Duration) {
			t.Helper()
			start, before := u.Now(), u.stats().NoReceive
			for id := range uint64(3) {
				u.send(u.toB(id), 10)
			}
			u.Pass(time.Millisecond)
			if n := u.stats().NoReceive - before; n != 3 {
				t.Errorf("%d messages were lost", n)
			}
			if waited := time.Duration(u.Now() - start); local && (waited < least || waited > most) {
				t.Errorf("waited %v in all", waited)
			}
		}
		lose(0, 20*time.Millisecond) // it has never received
		u.b.PostRecv(0, u.mb.SGE(0, 100))
		u.send(u.toB(4), 10)
		completions(u.World, u.b.Recv, 1)
		lose(100*time.Millisecond, 120*time.Millisecond)
		u.b.PostRecv(1, u.mb.SGE(0, 100))
		u.send(u.toB(5), 10)
		completions(u.World, u.b.Recv, 1)
		if !local {
			return
		}
		u.a.Post(u.toB(6), u.ma.SGE(0, 10)) // waits again
		u.Pass(50 * time.Millisecond)
		u.b.PostRecv(2, u.mb.SGE(0, 100))
		completions(u.World, u.b.Recv, 1)
	})
}

// TestHighQKey: a Q_Key with the high bit stands for the sending queue pair's own.
func TestHighQKey(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		u.b.PostRecv(1, u.mb.SGE(0, 100))
		u.send(enginetest.To(enginetest.Send(1), u.b.Client.Host.Addr, u.b.Q.QPN, 0x80000000), 10)
		completions(u.World, u.b.Recv, 1)
		if err := u.a.ModifyNumber(abi.QPMaskQKey, abi.QPAttr{QKey: 5}); err != nil {
			t.Fatal(err)
		}
		u.send(enginetest.To(enginetest.Send(1), u.b.Client.Host.Addr, u.b.Q.QPN, 0x80000000|qkey), 10)
		u.Pass(time.Millisecond)
		if s := u.stats(); s.WrongQKey != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDatagramAddresses: an address that nobody has, one without a route and one
// that is none hold up no message to others, and their messages are counted.
func TestDatagramAddresses(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	for i := range uint64(20) {
		u.b.PostRecv(i, u.mb.SGE(0, 2000))
	}
	silent := wire.IPv4{10, 0, 0, 77}
	for i := range uint64(20) {
		u.a.Post(enginetest.To(enginetest.Send(100+i), netip.AddrFrom4(silent), 5, qkey), u.ma.SGE(0, 1000))
		u.a.Post(enginetest.To(enginetest.Send(200+i), netip.AddrFrom4(wire.IPv4{192, 0, 2, 1}), 5, qkey), u.ma.SGE(0, 10))
		u.a.Post(u.toB(i), u.ma.SGE(0, 1000))
	}
	u.a.Post(enginetest.Send(300), u.ma.SGE(0, 10)) // no address at all
	for _, e := range completions(u.World, u.a.Send, 61) {
		if e.Status != 0 {
			t.Errorf("%+v", e)
		}
	}
	for i, e := range completions(u.World, u.b.Recv, 20) {
		if e.Status != 0 || e.WRID != uint64(i) || e.ByteLen != 1040 {
			t.Errorf("%+v", e)
		}
	}
	if passed := time.Duration(u.Now()); passed > 10*time.Millisecond {
		t.Errorf("took %v", passed)
	}
	u.Pass(5 * time.Second)
	if s := u.World.A.Engine.Datagrams.Stats; s.NoRoute != 21 || s.NoNeighbour+s.NeighbourWait != 20 || s.Sent != 20 {
		t.Errorf("%+v", s)
	}
}

// TestDatagramFlood: what waits for a neighbour that never answers is bounded.
func TestDatagramFlood(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	const messages = 600
	for i := range uint64(messages) {
		u.send(enginetest.To(enginetest.Send(i), netip.AddrFrom4(wire.IPv4{10, 0, 0, 77}), 5, qkey), 1000)
	}
	if s := u.World.A.Engine.Datagrams.Stats; s.NeighbourWait < messages-300 || s.NeighbourWait > messages-200 {
		t.Errorf("%+v", s)
	}
	u.Pass(5 * time.Second)
	if s := u.World.A.Engine.Datagrams.Stats; s.NoNeighbour+s.NeighbourWait != messages {
		t.Errorf("%+v", s)
	}
}

// TestDatagramLoss: a lossy wire loses messages and doubles none that it didn't
// double; each is whole. Of 64 receives 24 are posted at most, so none is filled anew
// before it was looked at.
func TestDatagramLoss(t *testing.T) {
	u := newUD(t, false, enginetest.Options{})
	u.send(u.toB(0), 0) // finds the neighbour
	u.SetPath(linked.Path{Loss: 0.2, Reorder: 0.2, Delay: 20 * time.Microsecond})
	got := map[byte]bool{}
	for i := range 200 {
		if u.b.Ring.RQ.Free() > 40 {
			u.b.PostRecv(uint64(i), u.mb.SGE(i%32*1100, 1100))
		}
		u.ma.Bytes[0] = byte(i)
		u.send(u.toB(uint64(i)), 1000)
		u.Pass(100 * time.Microsecond)
		for _, e := range u.b.Recv.Poll() {
			b := u.mb.Bytes[e.WRID%32*1100+40:]
			if got[b[0]] || e.ByteLen != 1040 || !bytes.Equal(b[1:1000], u.ma.Bytes[1:1000]) {
				t.Fatalf("%+v, message %d", e, b[0])
			}
			got[b[0]] = true
		}
	}
	if len(got) < 120 || len(got) == 200 {
		t.Errorf("%d of 200 came", len(got))
	}
}

// TestDatagramSendErrors: a wrong work request stops the sends alone: its status
// says why, the rest is flushed, arrivals go on, and RTS follows SQE.
func TestDatagramSendErrors(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for name, c := range map[string]struct {
			spoil  func(u *ud, w *abi.SQE) abi.SGE
			status uint32
		}{
			"key":      {func(u *ud, w *abi.SQE) abi.SGE { return u.mb.SGE(0, 10) }, abi.StatusLocProtErr},
			"too long": {func(u *ud, w *abi.SQE) abi.SGE { return u.ma.SGE(0, 1025) }, abi.StatusLocLenErr},
			"write":    {func(u *ud, w *abi.SQE) abi.SGE { w.Opcode = abi.WRRDMAWrite; return u.ma.SGE(0, 10) }, abi.StatusLocQPOpErr},
			"invalidate": {func(u *ud, w *abi.SQE) abi.SGE {
				w.Opcode = abi.WRSendWithInv
				return u.ma.SGE(0, 10)
			}, abi.StatusLocQPOpErr},
		} {
			u := newUD(t, local, enginetest.Options{})
			for i := range uint64(4) {
				u.b.PostRecv(i, u.mb.SGE(0, 2000))
				u.a.PostRecv(i, u.ma.SGE(8192, 2000))
			}
			bad := u.toB(2)
			sge := c.spoil(u, &bad)
			u.a.Post(u.toB(1), u.ma.SGE(0, 10))
			u.a.Post(bad, sge)
			u.a.Post(u.toB(3), u.ma.SGE(0, 10))
			expect(t, name, completions(u.World, u.a.Send, 3), []uint64{1, 2, 3}, 0, c.status, abi.StatusWRFlushErr)
			if u.a.Q.State() != abi.QPSSQE {
				t.Fatalf("%s: state %d", name, u.a.Q.State())
			}
			u.a.Post(u.toB(4), u.ma.SGE(0, 10))
			expect(t, name, completions(u.World, u.a.Send, 1), []uint64{4}, abi.StatusWRFlushErr)
			back := enginetest.To(enginetest.Send(9), u.a.Client.Host.Addr, u.a.Q.QPN, qkey)
			u.b.Post(back, u.mb.SGE(0, 20))
			completions(u.World, u.a.Recv, 1)
			if err := u.a.ModifyNumber(abi.QPMaskState|abi.QPMaskCurState, abi.QPAttr{QPState: abi.QPSRTS, CurQPState: abi.QPSSQE}); err != nil {
				t.Fatal(err)
			}
			u.send(u.toB(5), 10)
			if n := len(completions(u.World, u.b.Recv, 2)); n != 2 {
				t.Errorf("%s: %d messages came", name, n)
			}
		}
	})
}

// TestDatagramRevoked: memory that is deregistered under a message fails it alone;
// that of a receive ends the receiver.
func TestDatagramRevoked(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		gone := u.b.Client.Register(4096, rw)
		u.b.PostRecv(1, gone.SGE(0, 100))
		gone.Deregister()
		u.send(u.toB(1), 10)
		if e := completions(u.World, u.b.Recv, 1)[0]; e.Status != abi.StatusLocProtErr || u.b.Q.State() != abi.QPSErr {
			t.Errorf("%+v, state %d", e, u.b.Q.State())
		}
		u.send(u.toB(2), 10)
		u.Pass(time.Millisecond)
		if s := u.stats(); s.NoQueuePair != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDatagramStates: what arrives in RTR counts, in ERR and after RESET nothing
// does, and a queue pair that was reset works again.
func TestDatagramStates(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		u.b.PostRecv(1, u.mb.SGE(0, 100))
		if err := u.b.ModifyNumber(abi.QPMaskState, abi.QPAttr{QPState: abi.QPSErr}); err != nil {
			t.Fatal(err)
		}
		expect(t, "flushed", completions(u.World, u.b.Recv, 1), []uint64{1}, abi.StatusWRFlushErr)
		for _, to := range []struct{ mask, state uint32 }{{0, abi.QPSReset},
			{abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey, abi.QPSInit}} {
			if err := u.b.ModifyNumber(to.mask|abi.QPMaskState, abi.QPAttr{QPState: to.state, PortNum: 1, QKey: 9}); err != nil {
				t.Fatal(err)
			}
			u.send(u.toB(1), 10)
		}
		u.Pass(time.Millisecond)
		if s := u.stats(); s.NoQueuePair != 2 {
			t.Errorf("%+v", s)
		}
		u.b.PostRecv(2, u.mb.SGE(0, 100))
		if err := u.b.ModifyNumber(abi.QPMaskState|abi.QPMaskQKey, abi.QPAttr{QPState: abi.QPSRTR, QKey: qkey}); err != nil {
			t.Fatal(err)
		}
		u.send(u.toB(3), 10)
		if e := completions(u.World, u.b.Recv, 1)[0]; e.Status != 0 || e.WRID != 2 {
			t.Errorf("%+v", e)
		}
	})
}

// TestDatagramSolicited: a queue armed for solicited events hears of solicited
// messages alone.
func TestDatagramSolicited(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		for i := range uint64(2) {
			u.b.PostRecv(i, u.mb.SGE(0, 100))
		}
		u.b.Recv.Ring.Arm(true)
		for i, flags := range []uint32{0, abi.SendSolicited} {
			w := u.toB(1)
			w.Flags |= flags
			u.send(w, 10)
			u.Pass(time.Millisecond)
			if n := u.b.Recv.TakeEvents(); n != i {
				t.Errorf("message %d: %d events", i, n)
			}
		}
	})
}

// TestDatagramsOnSharedQueue: queue pairs that share a receive queue take from it
// in the order of arrival; a receive that is too short stays.
func TestDatagramsOnSharedQueue(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUD(t, local, enginetest.Options{})
		srq := u.b.Client.NewSRQ(16, 0)
		cq := u.b.Client.NewCQ(64)
		x, y := srq.NewDatagramQP(qkey, cq), srq.NewDatagramQP(qkey, cq)
		for i := range uint64(4) {
			srq.Post(i, u.mb.SGE(int(i)*100, 60))
		}
		for i, q := range []*enginetest.QP{x, y, y, x} {
			u.send(enginetest.To(enginetest.Send(1), q.Client.Host.Addr, q.Q.QPN, qkey), 21) // too long
			u.send(enginetest.To(enginetest.Send(1), q.Client.Host.Addr, q.Q.QPN, qkey), 20)
			if e := completions(u.World, cq, 1)[0]; e.WRID != uint64(i) || e.QPNum != q.Q.QPN || e.ByteLen != 60 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestDatagramPipes: over a port of the kernel's UDP, too.
func TestDatagramPipes(t *testing.T) {
	u := newUD(t, false, enginetest.Options{Datagrams: true})
	for i := range uint64(10) {
		u.b.PostRecv(i, u.mb.SGE(0, 2000))
		u.send(u.toB(i), 1024)
		completions(u.World, u.b.Recv, 1)
	}
	if !bytes.Equal(u.mb.Bytes[:40], u.grh(1024)) || !bytes.Equal(u.mb.Bytes[40:1064], u.ma.Bytes[:1024]) {
		t.Error("bytes differ")
	}
}
