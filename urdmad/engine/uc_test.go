package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
)

// newUC is two queue pairs of type UC that name each other, with memory.
func newUC(t *testing.T, local bool, o enginetest.Options) *ud {
	o.Seed = 95
	u := &ud{World: enginetest.New(t, o), t: t}
	host := u.World.B
	if local {
		host = u.World.A
	}
	u.a, u.b = u.World.A.NewClient().NewUC(), host.NewClient().NewUC()
	u.a.ToRTR(u.b, 7)
	u.b.ToRTR(u.a, 9)
	u.a.ToRTS(9)
	u.b.ToRTS(7)
	u.register((*enginetest.Client).Register)
	return u
}

func (u *ud) register(register func(*enginetest.Client, int, uint32) *enginetest.Region) {
	u.ma, u.mb = register(u.a.Client, 1<<20, rw), register(u.b.Client, 1<<20, rw)
	for i := range u.ma.Bytes {
		u.ma.Bytes[i] = byte(i*7 + i>>8)
	}
}

// TestUCMessages: every operation of such queue pairs, of all sizes.
func TestUCMessages(t *testing.T) {
	bothMemories(t, func(t *testing.T, local bool, register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		u := newUC(t, local, enginetest.Options{})
		u.register(register)
		for id, size := range []int{0, 1, 1000, 5000, 1 << 20} {
			for _, imm := range []bool{false, true} {
				u.b.PostRecv(uint64(id), u.mb.SGE(0, 100), u.mb.SGE(100, 1<<20-100))
				w := enginetest.Send(uint64(id))
				if imm {
					w = withImm(w, 0x04030201)
				}
				u.send(w, size)
				e := completions(u.World, u.b.Recv, 1)[0]
				if e.Status != 0 || int(e.ByteLen) != size || (e.WCFlags == abi.WCWithImm) != imm || imm && e.ImmOrSTag != 0x04030201 {
					t.Fatalf("%d bytes: %+v", size, e)
				}
				u.same(size)
				w = enginetest.Write(uint64(id), u.mb, 0)
				if imm {
					u.b.PostRecv(50)
					w = withImm(w, 0x0a)
				}
				clear(u.mb.Bytes)
				u.a.Post(w, u.ma.SGE(0, size))
				completions(u.World, u.a.Send, 1)
				if imm {
					e := completions(u.World, u.b.Recv, 1)[0]
					if e.Opcode != abi.WCRecvRDMAWithImm || int(e.ByteLen) != size || e.WRID != 50 {
						t.Fatalf("%d bytes: %+v", size, e)
					}
				}
				u.Pass(10 * time.Millisecond)
				u.same(size)
			}
		}
	})
}

func (u *ud) same(size int) {
	u.t.Helper()
	if !bytes.Equal(u.mb.Bytes[:size], u.ma.Bytes[:size]) {
		u.t.Fatalf("%d bytes: they differ", size)
	}
}

// TestUCLoss: of what a network loses, duplicates and reorders, whole messages
// arrive in the order they were sent, or not at all; each send succeeds, and
// nothing is sent twice.
func TestUCLoss(t *testing.T) {
	for _, size := range []int{100, 8000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			u := newUC(t, false, enginetest.Options{Path: linked.Path{Loss: 0.02, Duplicate: 0.02, Reorder: 0.02}})
			const messages = 500
			got := 0
			last := -1
			for id := range messages {
				for u.b.Q.RQ.Posted() < 32 {
					u.b.PostRecv(1, u.mb.SGE(0, size))
				}
				u.ma.Bytes[0], u.ma.Bytes[size-1] = byte(id), byte(id)
				u.send(withImm(enginetest.Send(uint64(id)), uint32(id)), size)
				u.Pass(time.Millisecond)
				for _, e := range u.b.Recv.Poll() {
					got++
					if int(e.ImmOrSTag) <= last || int(e.ByteLen) != size || e.Status != 0 || u.mb.Bytes[0] != byte(e.ImmOrSTag) || u.mb.Bytes[size-1] != byte(e.ImmOrSTag) {
						t.Fatalf("after %d: %+v, bytes %d and %d", last, e, u.mb.Bytes[0], u.mb.Bytes[size-1])
					}
					last = int(e.ImmOrSTag)
				}
			}
			s := u.stats()
			if got == 0 || got == messages || s.Late == 0 || s.Torn == 0 && size > 1500 {
				t.Errorf("%d of %d messages arrived: %+v", got, messages, s)
			}
		})
	}
}

// TestUCDrops: what such a queue pair does not take is dropped without a word, and
// what comes after it arrives.
func TestUCDrops(t *testing.T) {
	for name, c := range map[string]func(u *ud) (abi.SQE, int){
		"no receive": func(u *ud) (abi.SQE, int) { return enginetest.Send(1), 10 },
		"write to readonly memory": func(u *ud) (abi.SQE, int) {
			return enginetest.Write(1, u.b.Client.Register(4096, abi.AccessLocalWrite), 0), 10
		},
		"write out of bounds": func(u *ud) (abi.SQE, int) { return enginetest.Write(1, u.mb, 1<<20-5), 10 },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, local bool) {
				u := newUC(t, local, enginetest.Options{})
				w, n := c(u)
				u.a.Post(w, u.ma.SGE(0, n))
				expect(t, "sender", completions(u.World, u.a.Send, 1), []uint64{1}, 0)
				u.Pass(10 * time.Millisecond)
				u.b.PostRecv(3, u.mb.SGE(0, 100))
				u.send(enginetest.Send(2), 20)
				expect(t, "next", completions(u.World, u.b.Recv, 1), []uint64{3}, 0)
				if u.a.Q.State() != abi.QPSRTS || u.b.Q.State() != abi.QPSRTS {
					t.Errorf("states %d and %d", u.a.Q.State(), u.b.Q.State())
				}
			})
		})
	}
}

// TestUCTooLong: a message longer than the receive is dropped, and the receive
// serves the next.
func TestUCTooLong(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUC(t, local, enginetest.Options{})
		u.b.PostRecv(3, u.mb.SGE(0, 100))
		u.send(enginetest.Send(1), 5000)
		u.Pass(10 * time.Millisecond)
		u.send(enginetest.Send(2), 100)
		e := completions(u.World, u.b.Recv, 1)[0]
		if e.WRID != 3 || e.Status != 0 || e.ByteLen != 100 {
			t.Errorf("%+v", e)
		}
		u.same(100)
	})
}

// TestUCStrangers: packets of a queue pair that is not the peer change nothing.
func TestUCStrangers(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUC(t, local, enginetest.Options{})
		u.b.PostRecv(3, u.mb.SGE(0, 100))
		c := u.a.Client.NewUC()
		c.ToRTR(u.b, 0)
		c.ToRTS(0)
		c.Post(enginetest.Send(1), u.ma.SGE(0, 10))
		expect(t, "stranger", completions(u.World, c.Send, 1), []uint64{1}, 0)
		u.Pass(10 * time.Millisecond)
		if got := u.b.Recv.Poll(); len(got) != 0 || u.stats().NoQueuePair != 1 {
			t.Errorf("%+v; %+v", got, u.stats())
		}
	})
}

// TestUCErrors: operations that need an answer fail, and sends stop; what is posted
// to RESET and back begins anew.
func TestUCErrors(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		u := newUC(t, local, enginetest.Options{})
		u.a.PostRecv(8, u.ma.SGE(0, 100))
		u.a.Post(enginetest.Read(1, u.mb, 0), u.ma.SGE(0, 10))
		u.a.Post(enginetest.Send(2), u.ma.SGE(0, 10))
		expect(t, "read", completions(u.World, u.a.Send, 2), []uint64{1, 2}, abi.StatusLocQPOpErr, abi.StatusWRFlushErr)
		if u.a.Q.State() != abi.QPSSQE {
			t.Errorf("state %d, expected SQE", u.a.Q.State())
		}
		u.a.Post(enginetest.Send(3), u.ma.SGE(0, 10))
		expect(t, "in SQE", completions(u.World, u.a.Send, 1), []uint64{3}, abi.StatusWRFlushErr)
		u.b.Post(enginetest.Send(4), u.mb.SGE(0, 10))
		expect(t, "to SQE", completions(u.World, u.a.Recv, 1), []uint64{8}, abi.StatusSuccess)
		completions(u.World, u.b.Send, 1)
		if err := u.a.Modify(abi.QPSRTS); err != nil {
			t.Fatal(err)
		}
		u.b.PostRecv(3, u.mb.SGE(0, 100))
		u.send(enginetest.Send(2), 20)
		completions(u.World, u.b.Recv, 1)
		u.b.PostRecv(4, u.mb.SGE(0, 100))
		if err := u.b.Modify(abi.QPSErr); err != nil {
			t.Fatal(err)
		}
		expect(t, "flushed", completions(u.World, u.b.Recv, 1), []uint64{4}, abi.StatusWRFlushErr)
		if err := u.b.Modify(abi.QPSReset); err != nil {
			t.Fatal(err)
		}
		u.send(enginetest.Send(5), 20) // to nobody
	})
}

// TestUCPipes: over a port of the kernel's UDP, too.
func TestUCPipes(t *testing.T) {
	u := newUC(t, false, enginetest.Options{Datagrams: true})
	u.b.PostRecv(3, u.mb.SGE(0, 100))
	u.send(enginetest.Send(1), 50)
	completions(u.World, u.b.Recv, 1)
	u.same(50)
}
