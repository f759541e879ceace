package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestReadLimits: no more Reads are open than agreed on, and more than that wait
// in the queue.
func TestReadLimits(t *testing.T) {
	for _, limit := range []uint8{1, 2, 7} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 20, Path: linked.Path{Delay: 100 * time.Microsecond}})
			a, b := w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(nil)
			enginetest.Join(a, b, limit)
			if c := a.Q.Connection(); c.ORD != uint16(limit) || b.Q.Connection().IRD != uint16(limit) {
				t.Fatalf("ORD %d, IRD %d", c.ORD, b.Q.Connection().IRD)
			}
			open, most := map[uint32]bool{}, 0
			w.Net.Trace(func(ev linked.Event) { // what the peer has taken and not yet answered wholly
				d, _, ok := segmentOf(ev.Frame)
				if !ok || ev.What != linked.Sent {
					return
				}
				if d.Op == wire.OpReadRequest {
					open[uint32(d.MSN)] = true
				}
				if d.Op == wire.OpReadResponse && d.Last {
					for m := range open {
						delete(open, m)
						break
					}
				}
				most = max(most, len(open))
			})
			src, dst := b.Client.Register(40000, rw), a.Client.Register(40000, rw)
			for i := range uint64(30) {
				a.Post(enginetest.Read(i, src, 0), dst.SGE(0, 2000))
			}
			for i, e := range completions(w, a.Send, 30) {
				if e.WRID != uint64(i) || e.Status != 0 || e.ByteLen != 2000 || e.Opcode != abi.WCRDMARead {
					t.Fatalf("%+v", e)
				}
			}
			if most != int(limit) {
				t.Errorf("%d Reads were open at once, expected %d", most, limit)
			}
		})
	}
}

// segmentOf parses the DDP header of an extended connection's frame.
func segmentOf(frame []byte) (d wire.DDP, t wire.TRP, ok bool) {
	var f wire.Frame
	if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
		return d, t, false
	}
	b := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	at, err := t.Parse(b, true)
	if err != nil || t.Op != wire.OpData || len(b) == at {
		return d, t, false
	}
	_, err = d.Parse(b[at:])
	return d, t, err == nil
}

// TestNoReadsAgreed: with ORD 0 a Read fails here and never leaves.
func TestNoReadsAgreed(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 21})
		other := w.B
		if local {
			other = w.A
		}
		a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
		enginetest.Join(a, b, 0)
		src, dst := b.Client.Register(4096, rw), a.Client.Register(4096, rw)
		a.Post(enginetest.Read(1, src, 0), dst.SGE(0, 100))
		expect(t, "read", completions(w, a.Send, 1), []uint64{1}, abi.StatusLocQPOpErr)
	})
}

// TestFence: a fenced Send waits for the Reads before it, so it can carry what
// they brought.
func TestFence(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 22, Path: linked.Path{Delay: 100 * time.Microsecond}})
		a, b := w.Pair(local, nil)
		src, dst := b.Client.Register(1<<20, rw), a.Client.Register(1<<20, rw)
		inbox := b.Client.Register(1<<20, rw)
		for i := range src.Bytes {
			src.Bytes[i] = byte(i*7 + i>>8)
		}
		b.PostRecv(9, inbox.SGE(0, 1<<20))
		a.Post(enginetest.Read(1, src, 0), dst.SGE(0, 1<<20))
		s := enginetest.Send(2)
		s.Flags |= abi.SendFence
		a.Post(s, dst.SGE(0, 1<<20))
		expect(t, "sender", completions(w, a.Send, 2), []uint64{1, 2}, 0, 0)
		if !bytes.Equal(inbox.Bytes, src.Bytes) {
			t.Error("the fenced Send left before the Read's data were there")
		}
	})
}

// TestZeroLength: empty messages of every kind complete, and an empty Write or
// Read doesn't look at its key (RFC 5040 section 5).
func TestZeroLength(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 23})
		a, b := w.Pair(local, nil)
		b.PostRecv(9)
		b.PostRecv(10)
		a.Post(abi.SQE{WRID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: 12345})
		a.Post(abi.SQE{WRID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, RKey: 12345})
		a.Post(enginetest.Send(3))
		a.PostInline(enginetest.Send(4), nil)
		expect(t, "sender", completions(w, a.Send, 4), []uint64{1, 2, 3, 4}, 0, 0, 0, 0)
		expect(t, "receiver", completions(w, b.Recv, 2), []uint64{9, 10}, 0, 0)
	})
}

// TestSolicited: an event comes for the completions that the client asked for,
// once.
func TestSolicited(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 24})
		a, b := w.Pair(local, nil)
		send := func(solicited bool) {
			b.PostRecv(1)
			s := enginetest.Send(1)
			if solicited {
				s.Flags |= abi.SendSolicited
			}
			a.Post(s)
			completions(w, a.Send, 1)
			completions(w, b.Recv, 1)
		}
		steps := []struct{ armed, onlySolicited, solicited, event bool }{
			{false, false, true, false}, {true, false, false, true}, {false, false, true, false},
			{true, true, false, false}, {false, false, true, true}, {true, true, true, true},
		}
		for i, s := range steps {
			if s.armed {
				b.Recv.Ring.Arm(s.onlySolicited)
			}
			send(s.solicited)
			if n := b.Recv.TakeEvents(); n != 0 && !s.event || n != 1 && s.event {
				t.Fatalf("step %d: %d events", i, n)
			}
		}
		b.Recv.Ring.Arm(true) // an error counts as solicited
		b.PostRecv(5)
		if err := b.Modify(abi.QPSErr); err != nil {
			t.Fatal(err)
		}
		completions(w, b.Recv, 1)
		if n := b.Recv.TakeEvents(); n != 1 {
			t.Fatalf("%d events for a failed completion", n)
		}
	})
}

// TestUnsignaled: requests without the flag complete silently, free their slots,
// and still report errors.
func TestUnsignaled(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 26})
		a, b := w.Pair(local, nil)
		mine, peer := a.Client.Register(4096, rw), b.Client.Register(4096, rw)
		for range 300 {
			wr := enginetest.Write(1, peer, 0)
			wr.Flags = 0
			w.Until("a free slot", time.Second, func() bool { return a.Ring.SQ.Free() > 0 })
			a.Post(wr, mine.SGE(0, 10))
		}
		w.Until("all slots free", time.Second, func() bool { return a.Ring.SQ.Free() == 64 })
		if got := a.Send.Poll(); len(got) != 0 {
			t.Fatalf("completions %+v", got)
		}
		bad := enginetest.Write(2, peer, 9000)
		bad.Flags = 0
		a.Post(bad, mine.SGE(0, 10))
		expect(t, "error", completions(w, a.Send, 1), []uint64{2}, abi.StatusRemAccessErr)
	})
}
