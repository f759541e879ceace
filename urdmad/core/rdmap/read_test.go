package rdmap_test

import (
	"fmt"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestReadLimits: no more Reads are outstanding than agreed; further ones wait in the queue.
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
			w.Net.Trace(func(ev linked.Event) { // Reads that the peer has received and not yet answered completely
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
			src, dst := b.Client.Register(40000, enginetest.ReadWrite), a.Client.Register(40000, enginetest.ReadWrite)
			for i := range uint64(30) {
				a.Post(enginetest.Read(i, src, 0), dst.SGE(0, 2000))
			}
			for i, e := range a.Send.Completions(30) {
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

// segmentOf parses the DDP header of a connection's frame.
func segmentOf(frame []byte) (d wire.DDP, t wire.TRP, ok bool) {
	var f wire.Frame
	if f.Parse(frame, len(frame)) != nil || f.Proto != wire.ProtoUDP {
		return d, t, false
	}
	b := frame[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	at, err := t.Parse(b)
	if err != nil || t.Op != wire.OpData || len(b) == at {
		return d, t, false
	}
	_, err = d.Parse(b[at:])
	return d, t, err == nil
}

// TestNoReadsAgreed: with ORD 0 a Read fails locally and is never sent.
func TestNoReadsAgreed(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 21})
		other := w.B
		if local {
			other = w.A
		}
		a, b := w.A.NewClient().NewQP(nil), other.NewClient().NewQP(nil)
		enginetest.Join(a, b, 0)
		src, dst := b.Client.Register(4096, enginetest.ReadWrite), a.Client.Register(4096, enginetest.ReadWrite)
		a.Post(enginetest.Read(1, src, 0), dst.SGE(0, 100))
		enginetest.Expect(t, "read", a.Send.Completions(1), []uint64{1}, abi.StatusLocQPOpErr)
	})
}

// TestZeroLength: empty messages of every kind complete, and the key of an empty Write or Read is not checked (RFC
// 5040 section 5).
func TestZeroLength(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 23})
		a, b := w.Pair(local, nil)
		b.PostRecv(9)
		b.PostRecv(10)
		a.Post(abi.SQE{WRID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: 12345})
		a.Post(abi.SQE{WRID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, RKey: 12345})
		a.Post(enginetest.Send(3))
		a.PostInline(enginetest.Send(4), nil)
		enginetest.Expect(t, "sender", a.Send.Completions(4), []uint64{1, 2, 3, 4}, 0, 0, 0, 0)
		enginetest.Expect(t, "receiver", b.Recv.Completions(2), []uint64{9, 10}, 0, 0)
	})
}

// TestSolicited: an event is sent for the completions that the client has requested, once.
func TestSolicited(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 24})
		a, b := w.Pair(local, nil)
		send := func(solicited bool) {
			b.PostRecv(1)
			s := enginetest.Send(1)
			if solicited {
				s.Flags |= abi.SendSolicited
			}
			a.Post(s)
			a.Send.Completions(1)
			b.Recv.Completions(1)
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
		b.Recv.Completions(1)
		if n := b.Recv.TakeEvents(); n != 1 {
			t.Fatalf("%d events for a failed completion", n)
		}
	})
}
