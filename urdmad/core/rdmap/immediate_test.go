package rdmap_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestImmediate: the receiver's completions of Sends and Writes with immediate data, of none and of several
// segments, between Writes without.
func TestImmediate(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 70})
		a, b := w.Pair(local, nil)
		mine, peer := a.Client.Register(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
		for i := range mine.Bytes {
			mine.Bytes[i] = byte(i)
		}
		for i := range uint64(5) {
			b.PostRecv(10+i, peer.SGE(4096, 3000))
		}
		a.Post(enginetest.Write(0, peer, 0), mine.SGE(0, 700))
		a.Post(enginetest.WithImmediate(enginetest.Write(1, peer, 0), 1<<24)) // 0 bytes, after a message with bytes
		a.Post(enginetest.WithImmediate(enginetest.Write(2, peer, 0), 2), mine.SGE(0, 4000))
		a.Post(enginetest.WithImmediate(enginetest.Send(3), 0), mine.SGE(0, 2500))
		a.Post(enginetest.WithImmediate(enginetest.Send(4), 4))
		a.PostInline(enginetest.Send(5), []byte("plain"))
		enginetest.Expect(t, "sender", a.Send.Completions(6), []uint64{0, 1, 2, 3, 4, 5}, 0, 0, 0, 0, 0, 0)
		want := []abi.CQE{
			{Opcode: abi.WCRecvRDMAWithImm, WCFlags: abi.WCWithImm, ImmOrSTag: 1 << 24},
			{Opcode: abi.WCRecvRDMAWithImm, WCFlags: abi.WCWithImm, ImmOrSTag: 2, ByteLen: 4000},
			{Opcode: abi.WCRecv, WCFlags: abi.WCWithImm, ByteLen: 2500},
			{Opcode: abi.WCRecv, WCFlags: abi.WCWithImm, ImmOrSTag: 4},
			{Opcode: abi.WCRecv, ByteLen: 5},
		}
		for i, e := range b.Recv.Completions(5) {
			got := abi.CQE{Opcode: e.Opcode, WCFlags: e.WCFlags, ImmOrSTag: e.ImmOrSTag, ByteLen: e.ByteLen}
			if got != want[i] || e.WRID != 10+uint64(i) || e.Status != abi.StatusSuccess {
				t.Errorf("completion %d: %+v, expected %+v", i, e, want[i])
			}
		}
		if peer.Bytes[3999] != mine.Bytes[3999] || peer.Bytes[4000] != 0 {
			t.Error("the Write with immediate placed other bytes")
		}
	})
}

// TestImmediateSolicited: the flag wakes a program that armed the queue for solicited completions.
func TestImmediateSolicited(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 71})
		a, b := w.Pair(local, nil)
		mine, peer := a.Client.Register(100, enginetest.ReadWrite), b.Client.Register(100, enginetest.ReadWrite)
		for i, s := range []abi.SQE{enginetest.Send(0), enginetest.Write(1, peer, 0)} {
			for _, flag := range []uint32{0, abi.SendSolicited} {
				b.PostRecv(9, peer.SGE(0, 100))
				b.Recv.Ring.Arm(true)
				s := enginetest.WithImmediate(s, 5)
				s.Flags |= flag
				a.Post(s, mine.SGE(0, 100))
				a.Send.Completions(1)
				b.Recv.Completions(1)
				if n := b.Recv.TakeEvents(); n != int(flag/abi.SendSolicited) {
					t.Errorf("work request %d, flags %#x: %d events", i, flag, n)
				}
			}
		}
	})
}

// TestImmediateSegments: both forms as in docs/WIRE.md chapter 1, byte by byte.
func TestImmediateSegments(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 73})
	a, b := w.Pair(false, nil)
	peer := b.Client.Register(100, enginetest.ReadWrite)
	b.PostRecv(9, peer.SGE(0, 100))
	b.PostRecv(10)
	var got [][]byte
	w.Net.Trace(func(ev linked.Event) {
		if d, _, ok := segmentOf(ev.Frame); ok && ev.What == linked.Sent {
			segment := append([]byte(nil), ev.Frame[wire.UDPHeaderLen+wire.TRPExtLen:]...)
			if d.Tagged {
				clear(segment[2:14]) // STag and TO
			}
			got = append(got, segment)
		}
	})
	s := enginetest.WithImmediate(enginetest.Send(1), 0)
	s.ImmOrSTag = hostOrder(0xa1, 0xb2, 0xc3, 0xd4)
	a.PostInline(s, []byte{7, 8})
	s = enginetest.WithImmediate(enginetest.Write(2, peer, 0), hostOrder(1, 2, 3, 4))
	s.Flags |= abi.SendSolicited
	a.PostInline(s, []byte{9})
	enginetest.Expect(t, "sender", a.Send.Completions(2), []uint64{1, 2}, 0, 0)
	want := [][]byte{
		unhex("01 43 00000000 00000000 00000001 00000000 0708"),
		unhex("41 48 00000000 00000000 00000001 00000000 a1b2c3d4 00000000"),
		unhex("c1 40 00000000 0000000000000000 09"),
		unhex("41 49 00000000 00000000 00000002 00000000 01020304 00000000"),
	}
	expectSegments(t, got, want)
	w.Pass(time.Millisecond)
}

// TestImmediatePlacementIsOnce: a Write that overtakes another is placed when it arrives, and not again in its turn,
// because the program may already have read it and written newer data there.
func TestImmediatePlacementIsOnce(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 72, Immediate: true})
	c := w.A.NewClient()
	memory := c.Register(4096, enginetest.ReadWrite)
	l := w.Stranger().Dial(c.NewQP(nil), 4)
	write := func(psn wire.PSN, at uint64, data ...byte) {
		l.PSN = psn
		l.Segment(wire.DDP{Tagged: true, Last: true, Op: wire.OpWrite, STag: wire.STag(memory.STag), TO: memory.Base() + at},
			data...)
		w.Pass(100 * time.Microsecond)
	}
	first := l.PSN
	write(first.Add(1), 8, 2)
	if memory.Bytes[8] != 2 {
		t.Fatal("a Write that came early is not placed")
	}
	memory.Bytes[8] = 3
	write(first.Add(1), 8, 2) // the same, duplicated
	write(first, 0, 1)
	if memory.Bytes[0] != 1 || memory.Bytes[8] != 3 {
		t.Errorf("memory is %d and %d, expected 1, and 3 of the program's own", memory.Bytes[0], memory.Bytes[8])
	}
	write(first.Add(2), 8, 4)
	if memory.Bytes[8] != 4 {
		t.Error("the next Write is not placed")
	}
}
