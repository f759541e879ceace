package datagram_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestUCMessages: every operation of queue pairs of type UC, with all sizes.
func TestUCMessages(t *testing.T) {
	enginetest.Memories(t, func(t *testing.T, local bool,
		register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		u := enginetest.NewUCPair(t, local, enginetest.Options{})
		u.Register(register, 1<<20)
		for id, size := range []int{0, 1, 1000, 5000, 1 << 20} {
			for _, imm := range []bool{false, true} {
				u.QB.PostRecv(uint64(id), u.MB.SGE(0, 100), u.MB.SGE(100, 1<<20-100))
				w := enginetest.Send(uint64(id))
				if imm {
					w = enginetest.WithImmediate(w, 0x04030201)
				}
				u.Send(w, size)
				e := u.QB.Recv.Completions(1)[0]
				if e.Status != 0 || int(e.ByteLen) != size || (e.WCFlags == abi.WCWithImm) != imm || imm &&
					e.ImmOrSTag != 0x04030201 {
					t.Fatalf("%d bytes: %+v", size, e)
				}
				same(u, size)
				w = enginetest.Write(uint64(id), u.MB, 0)
				if imm {
					u.QB.PostRecv(50)
					w = enginetest.WithImmediate(w, 0x0a)
				}
				clear(u.MB.Bytes)
				u.QA.Post(w, u.MA.SGE(0, size))
				u.QA.Send.Completions(1)
				if imm {
					e := u.QB.Recv.Completions(1)[0]
					if e.Opcode != abi.WCRecvRDMAWithImm || int(e.ByteLen) != size || e.WRID != 50 {
						t.Fatalf("%d bytes: %+v", size, e)
					}
				}
				u.Pass(10 * time.Millisecond)
				same(u, size)
			}
		}
	})
}

func same(u *enginetest.DatagramPair, size int) {
	u.T.Helper()
	if !bytes.Equal(u.MB.Bytes[:size], u.MA.Bytes[:size]) {
		u.T.Fatalf("%d bytes: they differ", size)
	}
}

// TestUCLoss: over a network that loses, duplicates and reorders packets, messages arrive completely and in
// order, or not at all; each send succeeds, and nothing is sent twice.
func TestUCLoss(t *testing.T) {
	for _, size := range []int{100, 8000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			u := enginetest.NewUCPair(t, false, enginetest.Options{Path: linked.Path{Loss: 0.02, Duplicate: 0.02,
				Reorder: 0.02}})
			const messages = 500
			got := 0
			last := -1
			for id := range messages {
				for u.QB.Q.RQ.Posted() < 32 {
					u.QB.PostRecv(1, u.MB.SGE(0, size))
				}
				u.MA.Bytes[0], u.MA.Bytes[size-1] = byte(id), byte(id)
				u.Send(enginetest.WithImmediate(enginetest.Send(uint64(id)), uint32(id)), size)
				u.Pass(time.Millisecond)
				for _, e := range u.QB.Recv.Poll() {
					got++
					if int(e.ImmOrSTag) <= last || int(e.ByteLen) != size || e.Status != 0 || u.MB.Bytes[0] != byte(e.ImmOrSTag) ||
						u.MB.Bytes[size-1] != byte(e.ImmOrSTag) {
						t.Fatalf("after %d: %+v, bytes %d and %d", last, e, u.MB.Bytes[0], u.MB.Bytes[size-1])
					}
					last = int(e.ImmOrSTag)
				}
			}
			s := u.Stats()
			if got == 0 || got == messages || s.Late == 0 || s.Torn == 0 && size > 1500 {
				t.Errorf("%d of %d messages arrived: %+v", got, messages, s)
			}
		})
	}
}

// TestUCDrops: messages that such a queue pair can't accept are dropped silently, and later ones arrive.
func TestUCDrops(t *testing.T) {
	for name, c := range map[string]func(u *enginetest.DatagramPair) (abi.SQE, int){
		"no receive": func(u *enginetest.DatagramPair) (abi.SQE, int) { return enginetest.Send(1), 10 },
		"write to readonly memory": func(u *enginetest.DatagramPair) (abi.SQE, int) {
			return enginetest.Write(1, u.QB.Client.Register(4096, abi.AccessLocalWrite), 0), 10
		},
		"write out of bounds": func(u *enginetest.DatagramPair) (abi.SQE, int) {
			return enginetest.Write(1, u.MB, 1<<20-5),
				10
		},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				u := enginetest.NewUCPair(t, local, enginetest.Options{})
				w, n := c(u)
				u.QA.Post(w, u.MA.SGE(0, n))
				enginetest.Expect(t, "sender", u.QA.Send.Completions(1), []uint64{1}, 0)
				u.Pass(10 * time.Millisecond)
				u.QB.PostRecv(3, u.MB.SGE(0, 100))
				u.Send(enginetest.Send(2), 20)
				enginetest.Expect(t, "next", u.QB.Recv.Completions(1), []uint64{3}, 0)
				if u.QA.Q.State() != abi.QPSRTS || u.QB.Q.State() != abi.QPSRTS {
					t.Errorf("states %d and %d", u.QA.Q.State(), u.QB.Q.State())
				}
			})
		})
	}
}

// TestUCTooLong: a message longer than the receive is dropped, and the receive serves the next one.
func TestUCTooLong(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUCPair(t, local, enginetest.Options{})
		u.QB.PostRecv(3, u.MB.SGE(0, 100))
		u.Send(enginetest.Send(1), 5000)
		u.Pass(10 * time.Millisecond)
		u.Send(enginetest.Send(2), 100)
		e := u.QB.Recv.Completions(1)[0]
		if e.WRID != 3 || e.Status != 0 || e.ByteLen != 100 {
			t.Errorf("%+v", e)
		}
		same(u, 100)
	})
}

// TestUCStrangers: packets of a queue pair that is not the peer change nothing.
func TestUCStrangers(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUCPair(t, local, enginetest.Options{})
		u.QB.PostRecv(3, u.MB.SGE(0, 100))
		c := u.QA.Client.NewUC()
		c.ToRTR(u.QB, 0)
		c.ToRTS(0)
		c.Post(enginetest.Send(1), u.MA.SGE(0, 10))
		enginetest.Expect(t, "stranger", c.Send.Completions(1), []uint64{1}, 0)
		u.Pass(10 * time.Millisecond)
		if got := u.QB.Recv.Poll(); len(got) != 0 || u.Stats().NoQueuePair != 1 {
			t.Errorf("%+v; %+v", got, u.Stats())
		}
	})
}

// TestUCErrors: operations that need an answer fail, and sending stops; after a reset the queue pair works
// again.
func TestUCErrors(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		u := enginetest.NewUCPair(t, local, enginetest.Options{})
		u.QA.PostRecv(8, u.MA.SGE(0, 100))
		u.QA.Post(enginetest.Read(1, u.MB, 0), u.MA.SGE(0, 10))
		u.QA.Post(enginetest.Send(2), u.MA.SGE(0, 10))
		enginetest.Expect(t, "read", u.QA.Send.Completions(2), []uint64{1, 2}, abi.StatusLocQPOpErr, abi.StatusWRFlushErr)
		if u.QA.Q.State() != abi.QPSSQE {
			t.Errorf("state %d, expected SQE", u.QA.Q.State())
		}
		u.QA.Post(enginetest.Send(3), u.MA.SGE(0, 10))
		enginetest.Expect(t, "in SQE", u.QA.Send.Completions(1), []uint64{3}, abi.StatusWRFlushErr)
		u.QB.Post(enginetest.Send(4), u.MB.SGE(0, 10))
		enginetest.Expect(t, "to SQE", u.QA.Recv.Completions(1), []uint64{8}, abi.StatusSuccess)
		u.QB.Send.Completions(1)
		if err := u.QA.Modify(abi.QPSRTS); err != nil {
			t.Fatal(err)
		}
		u.QB.PostRecv(3, u.MB.SGE(0, 100))
		u.Send(enginetest.Send(2), 20)
		u.QB.Recv.Completions(1)
		u.QB.PostRecv(4, u.MB.SGE(0, 100))
		if err := u.QB.Modify(abi.QPSErr); err != nil {
			t.Fatal(err)
		}
		enginetest.Expect(t, "flushed", u.QB.Recv.Completions(1), []uint64{4}, abi.StatusWRFlushErr)
		if err := u.QB.Modify(abi.QPSReset); err != nil {
			t.Fatal(err)
		}
		u.Send(enginetest.Send(5), 20) // without a peer
	})
}

// TestUCPipes: the same over UDP sockets of the kernel.
func TestUCPipes(t *testing.T) {
	u := enginetest.NewUCPair(t, false, enginetest.Options{Datagrams: true})
	u.QB.PostRecv(3, u.MB.SGE(0, 100))
	u.Send(enginetest.Send(1), 50)
	u.QB.Recv.Completions(1)
	same(u, 50)
}

// TestUCOverrunByItself: a message between two queue pairs of one client overruns the completion queue of both, which
// ends both while the message is carried out.
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
		m := c.Register(1<<20, enginetest.ReadWrite)
		for i := range uint64(16) {
			b.PostRecv(i, m.SGE(0, size))
			a.Post(enginetest.Send(i), m.SGE(0, size))
		}
		w.Pass(10 * time.Millisecond)
		if a.Q.State() != abi.QPSErr || b.Q.State() != abi.QPSErr {
			t.Fatalf("states %d and %d, expected error", a.Q.State(), b.Q.State())
		}
		if wr := a.Q.SQ.At(a.Q.SQ.Tail()); wr.Offset() != 0 || wr.State != qp.SendQueued {
			t.Errorf("%d bytes: a slot that nobody uses was written: %+v", size, *wr)
		}
	}
}
