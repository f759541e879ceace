package datagram_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestDatagramMessages: messages of all sizes up to the port's MTU arrive with the sender's address, in all
// kinds of memory.
func TestDatagramMessages(t *testing.T) {
	enginetest.Memories(t, func(t *testing.T, local bool,
		register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		u.MA, u.MB = register(u.QA.Client, 4096, enginetest.ReadWrite), register(u.QB.Client, 4096, enginetest.ReadWrite)
		for i := range u.MA.Bytes {
			u.MA.Bytes[i] = byte(i * 3)
		}
		for id, size := range []int{0, 1, 39, 40, 41, 1023, 1024} {
			u.QB.PostRecv(uint64(id), u.MB.SGE(0, 50), u.MB.SGE(50, 2000))
			w := u.ToB(uint64(id))
			if id%2 == 1 {
				w.Opcode, w.ImmOrSTag = abi.WRSendWithImm, 0x04030201
			}
			u.Send(w, size)
			e := u.QB.Recv.Completions(1)[0]
			flags, imm := uint32(abi.WCGRH), uint32(0)
			if id%2 == 1 {
				flags, imm = flags|abi.WCWithImm, 0x04030201
			}
			if e.Status != 0 || e.Opcode != abi.WCRecv || int(e.ByteLen) != size+wire.GRHLen || e.SrcQP != u.QA.Q.QPN ||
				e.WCFlags != flags ||
				e.ImmOrSTag != imm || e.WRID != uint64(id) || e.SourceLID != 1 {
				t.Fatalf("%d bytes: %+v", size, e)
			}
			if !bytes.Equal(u.MB.Bytes[:40], u.GRH(size)) || !bytes.Equal(u.MB.Bytes[40:40+size], u.MA.Bytes[:size]) {
				t.Fatalf("%d bytes: they differ; header % x", size, u.MB.Bytes[:40])
			}
		}
		if got := u.QB.Q.Stats.BytesRecv; got != u.QA.Q.Stats.BytesSent {
			t.Errorf("%d bytes counted as received, %d as sent", got, u.QA.Q.Stats.BytesSent)
		}
	})
}

// TestDatagramInline: inline data is copied when it is posted.
func TestDatagramInline(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		u.QB.PostRecv(1, u.MB.SGE(0, 100))
		w := u.ToB(1)
		w.Flags |= abi.SendInline
		u.QA.PostInline(w, []byte("hello"))
		u.QB.Recv.Completions(1)
		if string(u.MB.Bytes[40:45]) != "hello" {
			t.Errorf("%q", u.MB.Bytes[40:45])
		}
	})
}

// TestDatagramDrops: a message that doesn't fit the receive is dropped and counted, completes at its
// sender, and does not affect later ones.
func TestDatagramDrops(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for name, c := range map[string]struct {
			to    func(u *enginetest.DatagramPair, w abi.SQE) abi.SQE
			count func(s *datagram.Stats) uint64
			size  int
		}{
			"unknown number": {func(u *enginetest.DatagramPair, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.QB.Client.Host.Addr, u.QB.Q.QPN^1, enginetest.QKey)
			}, func(s *datagram.Stats) uint64 { return s.NoQueuePair }, 10},
			"reliable queue pair": {func(u *enginetest.DatagramPair, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.QB.Client.Host.Addr, u.QB.Client.NewQP(nil).Q.QPN, enginetest.QKey)
			}, func(s *datagram.Stats) uint64 { return s.NoQueuePair }, 10},
			"wrong Q_Key": {func(u *enginetest.DatagramPair, w abi.SQE) abi.SQE {
				return enginetest.To(w, u.QB.Client.Host.Addr, u.QB.Q.QPN, enginetest.QKey+1)
			}, func(s *datagram.Stats) uint64 { return s.WrongQKey }, 10},
			"no room": {func(u *enginetest.DatagramPair, w abi.SQE) abi.SQE { return w },
				func(s *datagram.Stats) uint64 { return s.NoRoom }, 61},
		} {
			u := enginetest.NewUDPair(t, local, enginetest.Options{})
			u.QB.PostRecv(7, u.MB.SGE(0, 100))
			u.Send(c.to(u, u.ToB(1)), c.size)
			u.Pass(time.Millisecond)
			if s := u.Stats(); c.count(&s) != 1 {
				t.Errorf("%s: %+v", name, s)
			}
			u.Send(u.ToB(2), 60)
			if e := u.QB.Recv.Completions(1)[0]; e.WRID != 7 || e.Status != 0 || e.ByteLen != 100 {
				t.Errorf("%s: %+v", name, e)
			}
		}
	})
}

// TestDatagramWithoutReceive: over a wire a message without a receive is lost. Within one urdmad its sender waits a
// moment for a receiver that has received before, and then not again until there is a receive.
func TestDatagramWithoutReceive(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		lose := func(least, most time.Duration) {
			t.Helper()
			start, before := u.Now(), u.Stats().NoReceive
			for id := range uint64(3) {
				u.Send(u.ToB(id), 10)
			}
			u.Pass(time.Millisecond)
			if n := u.Stats().NoReceive - before; n != 3 {
				t.Errorf("%d messages were lost", n)
			}
			if waited := time.Duration(u.Now() - start); local && (waited < least || waited > most) {
				t.Errorf("waited %v in all", waited)
			}
		}
		lose(0, 20*time.Millisecond) // it has never received
		u.QB.PostRecv(0, u.MB.SGE(0, 100))
		u.Send(u.ToB(4), 10)
		u.QB.Recv.Completions(1)
		lose(100*time.Millisecond, 120*time.Millisecond)
		u.QB.PostRecv(1, u.MB.SGE(0, 100))
		u.Send(u.ToB(5), 10)
		u.QB.Recv.Completions(1)
		if !local {
			return
		}
		u.QA.Post(u.ToB(6), u.MA.SGE(0, 10)) // waits again
		u.Pass(50 * time.Millisecond)
		u.QB.PostRecv(2, u.MB.SGE(0, 100))
		u.QB.Recv.Completions(1)
	})
}

// TestHighQKey: a Q_Key with the high bit set means the sending queue pair's own.
func TestHighQKey(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		u.QB.PostRecv(1, u.MB.SGE(0, 100))
		u.Send(enginetest.To(enginetest.Send(1), u.QB.Client.Host.Addr, u.QB.Q.QPN, 0x80000000), 10)
		u.QB.Recv.Completions(1)
		if err := u.QA.ModifyNumber(abi.QPMaskQKey, abi.QPAttr{QKey: 5}); err != nil {
			t.Fatal(err)
		}
		u.Send(enginetest.To(enginetest.Send(1), u.QB.Client.Host.Addr, u.QB.Q.QPN, 0x80000000|enginetest.QKey), 10)
		u.Pass(time.Millisecond)
		if s := u.Stats(); s.WrongQKey != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDatagramAddresses: unused, unreachable and invalid addresses delay no messages to others, and
// messages to them are counted.
func TestDatagramAddresses(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	for i := range uint64(20) {
		u.QB.PostRecv(i, u.MB.SGE(0, 2000))
	}
	silent := wire.IPv4{10, 0, 0, 77}
	for i := range uint64(20) {
		u.QA.Post(enginetest.To(enginetest.Send(100+i), netip.AddrFrom4(silent), 5, enginetest.QKey), u.MA.SGE(0, 1000))
		u.QA.Post(enginetest.To(enginetest.Send(200+i), netip.AddrFrom4(wire.IPv4{192, 0, 2, 1}), 5, enginetest.QKey),
			u.MA.SGE(0, 10))
		u.QA.Post(u.ToB(i), u.MA.SGE(0, 1000))
	}
	u.QA.Post(enginetest.Send(300), u.MA.SGE(0, 10)) // no address at all
	for _, e := range u.QA.Send.Completions(61) {
		if e.Status != 0 {
			t.Errorf("%+v", e)
		}
	}
	for i, e := range u.QB.Recv.Completions(20) {
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

// TestDatagramFlood: the memory of messages that wait for a silent neighbour is bounded.
func TestDatagramFlood(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	const messages = 600
	for i := range uint64(messages) {
		u.Send(enginetest.To(enginetest.Send(i), netip.AddrFrom4(wire.IPv4{10, 0, 0, 77}), 5, enginetest.QKey), 1000)
	}
	if s := u.World.A.Engine.Datagrams.Stats; s.NeighbourWait < messages-300 || s.NeighbourWait > messages-200 {
		t.Errorf("%+v", s)
	}
	u.Pass(5 * time.Second)
	if s := u.World.A.Engine.Datagrams.Stats; s.NoNeighbour+s.NeighbourWait != messages {
		t.Errorf("%+v", s)
	}
}

// TestDatagramLoss: messages over a lossy network arrive completely or not at all, and are duplicated only
// by the network. At most 24 of 64 receives are posted, so none is reused before it was checked.
func TestDatagramLoss(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	u.Send(u.ToB(0), 0) // finds the neighbour
	u.SetPath(linked.Path{Loss: 0.2, Reorder: 0.2, Delay: 20 * time.Microsecond})
	got := map[byte]bool{}
	for i := range 200 {
		if u.QB.Ring.RQ.Free() > 40 {
			u.QB.PostRecv(uint64(i), u.MB.SGE(i%32*1100, 1100))
		}
		u.MA.Bytes[0] = byte(i)
		u.Send(u.ToB(uint64(i)), 1000)
		u.Pass(100 * time.Microsecond)
		for _, e := range u.QB.Recv.Poll() {
			b := u.MB.Bytes[e.WRID%32*1100+40:]
			if got[b[0]] || e.ByteLen != 1040 || !bytes.Equal(b[1:1000], u.MA.Bytes[1:1000]) {
				t.Fatalf("%+v, message %d", e, b[0])
			}
			got[b[0]] = true
		}
	}
	if len(got) < 120 || len(got) == 200 {
		t.Errorf("%d of 200 came", len(got))
	}
}

// TestDatagramSendErrors: a wrong work request stops only the sends: its status names the cause, the rest is flushed,
// messages still arrive, and RTS follows SQE.
func TestDatagramSendErrors(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for name, c := range map[string]struct {
			spoil  func(u *enginetest.DatagramPair, w *abi.SQE) abi.SGE
			status uint32
		}{
			"key":      {func(u *enginetest.DatagramPair, w *abi.SQE) abi.SGE { return u.MB.SGE(0, 10) }, abi.StatusLocProtErr},
			"too long": {func(u *enginetest.DatagramPair, w *abi.SQE) abi.SGE { return u.MA.SGE(0, 1025) }, abi.StatusLocLenErr},
			"write": {func(u *enginetest.DatagramPair, w *abi.SQE) abi.SGE {
				w.Opcode = abi.WRRDMAWrite
				return u.MA.SGE(0, 10)
			}, abi.StatusLocQPOpErr},
			"invalidate": {func(u *enginetest.DatagramPair, w *abi.SQE) abi.SGE {
				w.Opcode = abi.WRSendWithInv
				return u.MA.SGE(0, 10)
			}, abi.StatusLocQPOpErr},
		} {
			u := enginetest.NewUDPair(t, local, enginetest.Options{})
			for i := range uint64(4) {
				u.QB.PostRecv(i, u.MB.SGE(0, 2000))
				u.QA.PostRecv(i, u.MA.SGE(8192, 2000))
			}
			bad := u.ToB(2)
			sge := c.spoil(u, &bad)
			u.QA.Post(u.ToB(1), u.MA.SGE(0, 10))
			u.QA.Post(bad, sge)
			u.QA.Post(u.ToB(3), u.MA.SGE(0, 10))
			enginetest.Expect(t, name, u.QA.Send.Completions(3), []uint64{1, 2, 3}, 0, c.status, abi.StatusWRFlushErr)
			if u.QA.Q.State() != abi.QPSSQE {
				t.Fatalf("%s: state %d", name, u.QA.Q.State())
			}
			u.QA.Post(u.ToB(4), u.MA.SGE(0, 10))
			enginetest.Expect(t, name, u.QA.Send.Completions(1), []uint64{4}, abi.StatusWRFlushErr)
			back := enginetest.To(enginetest.Send(9), u.QA.Client.Host.Addr, u.QA.Q.QPN, enginetest.QKey)
			u.QB.Post(back, u.MB.SGE(0, 20))
			u.QA.Recv.Completions(1)
			if err := u.QA.ModifyNumber(abi.QPMaskState|abi.QPMaskCurState,
				abi.QPAttr{QPState: abi.QPSRTS, CurQPState: abi.QPSSQE}); err != nil {
				t.Fatal(err)
			}
			u.Send(u.ToB(5), 10)
			if n := len(u.QB.Recv.Completions(2)); n != 2 {
				t.Errorf("%s: %d messages came", name, n)
			}
		}
	})
}

// TestDatagramRevoked: deregistering a message's memory fails only that message; deregistering a receive's
// memory ends the receiving queue pair.
func TestDatagramRevoked(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		gone := u.QB.Client.Register(4096, enginetest.ReadWrite)
		u.QB.PostRecv(1, gone.SGE(0, 100))
		gone.Deregister()
		u.Send(u.ToB(1), 10)
		if e := u.QB.Recv.Completions(1)[0]; e.Status != abi.StatusLocProtErr || u.QB.Q.State() != abi.QPSErr {
			t.Errorf("%+v, state %d", e, u.QB.Q.State())
		}
		u.Send(u.ToB(2), 10)
		u.Pass(time.Millisecond)
		if s := u.Stats(); s.NoQueuePair != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDatagramStates: messages arrive in RTR, but not in ERR and after RESET, and a queue pair works again
// after a reset.
func TestDatagramStates(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		u.QB.PostRecv(1, u.MB.SGE(0, 100))
		if err := u.QB.ModifyNumber(abi.QPMaskState, abi.QPAttr{QPState: abi.QPSErr}); err != nil {
			t.Fatal(err)
		}
		enginetest.Expect(t, "flushed", u.QB.Recv.Completions(1), []uint64{1}, abi.StatusWRFlushErr)
		for _, to := range []struct{ mask, state uint32 }{{0, abi.QPSReset},
			{abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey, abi.QPSInit}} {
			if err := u.QB.ModifyNumber(to.mask|abi.QPMaskState,
				abi.QPAttr{QPState: to.state, PortNum: 1, QKey: 9}); err != nil {
				t.Fatal(err)
			}
			u.Send(u.ToB(1), 10)
		}
		u.Pass(time.Millisecond)
		if s := u.Stats(); s.NoQueuePair != 2 {
			t.Errorf("%+v", s)
		}
		u.QB.PostRecv(2, u.MB.SGE(0, 100))
		if err := u.QB.ModifyNumber(abi.QPMaskState|abi.QPMaskQKey,
			abi.QPAttr{QPState: abi.QPSRTR, QKey: enginetest.QKey}); err != nil {
			t.Fatal(err)
		}
		u.Send(u.ToB(3), 10)
		if e := u.QB.Recv.Completions(1)[0]; e.Status != 0 || e.WRID != 2 {
			t.Errorf("%+v", e)
		}
	})
}

// TestDatagramSolicited: a queue armed for solicited events gets events only for solicited messages.
func TestDatagramSolicited(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		for i := range uint64(2) {
			u.QB.PostRecv(i, u.MB.SGE(0, 100))
		}
		u.QB.Recv.Ring.Arm(true)
		for i, flags := range []uint32{0, abi.SendSolicited} {
			w := u.ToB(1)
			w.Flags |= flags
			u.Send(w, 10)
			u.Pass(time.Millisecond)
			if n := u.QB.Recv.TakeEvents(); n != i {
				t.Errorf("message %d: %d events", i, n)
			}
		}
	})
}

// TestDatagramsOnSharedQueue: queue pairs with a shared receive queue take receives in the order of arrival; a
// receive that is too short stays.
func TestDatagramsOnSharedQueue(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUDPair(t, local, enginetest.Options{})
		srq := u.QB.Client.NewSRQ(16, 0)
		cq := u.QB.Client.NewCQ(64)
		x, y := srq.NewDatagramQP(enginetest.QKey, cq), srq.NewDatagramQP(enginetest.QKey, cq)
		for i := range uint64(4) {
			srq.Post(i, u.MB.SGE(int(i)*100, 60))
		}
		for i, q := range []*enginetest.QP{x, y, y, x} {
			u.Send(enginetest.To(enginetest.Send(1), q.Client.Host.Addr, q.Q.QPN, enginetest.QKey), 21) // too long
			u.Send(enginetest.To(enginetest.Send(1), q.Client.Host.Addr, q.Q.QPN, enginetest.QKey), 20)
			if e := cq.Completions(1)[0]; e.WRID != uint64(i) || e.QPNum != q.Q.QPN || e.ByteLen != 60 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestDatagramPipes: the same over UDP sockets of the kernel.
func TestDatagramPipes(t *testing.T) {
	u := enginetest.NewUDPair(t, false, enginetest.Options{Datagrams: true})
	for i := range uint64(10) {
		u.QB.PostRecv(i, u.MB.SGE(0, 2000))
		u.Send(u.ToB(i), 1024)
		u.QB.Recv.Completions(1)
	}
	if !bytes.Equal(u.MB.Bytes[:40], u.GRH(1024)) || !bytes.Equal(u.MB.Bytes[40:1064], u.MA.Bytes[:1024]) {
		t.Error("bytes differ")
	}
}
