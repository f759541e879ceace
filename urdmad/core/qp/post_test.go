package qp_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestLocalMistakes: what a work request gets wrong on its own side fails it
// alone with its status, and flushes what is behind.
func TestLocalMistakes(t *testing.T) {
	cases := []struct {
		name   string
		status uint32
		post   func(a *enginetest.QP, mine, foreign, peer *enginetest.Region)
	}{
		{"local key", abi.StatusLocProtErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			s := mine.SGE(0, 10)
			s.LKey ^= 1
			a.Post(enginetest.Send(5), s)
		}},
		{"local bounds", abi.StatusLocProtErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			a.Post(enginetest.Send(5), mine.SGE(0, 10), mine.SGE(8192, 1))
		}},
		{"another's key", abi.StatusLocProtErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			a.Post(enginetest.Send(5), foreign.SGE(0, 10))
		}},
		{"read into what is not writable", abi.StatusLocProtErr,
			func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
				r := a.Client.Register(4096, 0)
				a.Post(enginetest.Read(5, peer, 0), r.SGE(0, 10))
			}},
		{"unknown opcode", abi.StatusLocQPOpErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			a.Post(abi.SQE{WRID: 5, Opcode: 77})
		}},
		{"atomic into 7 bytes", abi.StatusLocLenErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			w := enginetest.Write(5, peer, 0)
			w.Opcode = abi.WRAtomicFetchAndAdd
			a.Post(w, mine.SGE(0, 7))
		}},
		{"inline read", abi.StatusLocQPOpErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
			a.PostInline(enginetest.Read(5, peer, 0), []byte("x"))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, enginetest.Options{Seed: 4})
				a, b := w.Pair(local, nil)
				mine, peer := a.Client.Register(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
				foreign := a.Client.Host.NewClient().Register(8192, enginetest.ReadWrite)
				a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 5000))
				c.post(a, mine, foreign, peer)
				a.Post(enginetest.Write(6, peer, 0), mine.SGE(0, 5000))
				enginetest.Expect(t, "sender", a.Send.Completions(3), []uint64{1, 5, 6}, 0, c.status, abi.StatusWRFlushErr)
				a.Client.Event(abi.CMDisconnected, time.Second)
				b.Client.Event(abi.CMDisconnected, time.Second)
				w.Pass(3 * time.Second)
				w.CheckQuiet()
			})
		})
	}
}

// TestTooLong: a message of more than MaxMessage bytes is refused before
// anything of it goes out.
func TestTooLong(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 4})
	a, b := w.Pair(false, nil)
	const part = 65 << 20
	big, peer := a.Client.Register(part, abi.AccessLocalWrite), b.Client.Register(4096, enginetest.ReadWrite)
	var list []abi.SGE
	for range 32 {
		list = append(list, big.SGE(0, part))
	}
	a.Post(enginetest.Write(1, peer, 0), list...)
	enginetest.Expect(t, "sender", a.Send.Completions(1), []uint64{1}, abi.StatusLocLenErr)
	if n := w.B.Engine.Streams.SegmentsPlaced; n != 0 {
		t.Errorf("%d segments went out", n)
	}
}

// TestReceiveListTooLong: a slot of the receive queue that claims more elements than
// the queue pair may have, written past the library, fails the receive.
func TestReceiveListTooLong(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, claimed := range []uint32{5, 31, 1 << 31, ^uint32(0)} {
			w := enginetest.New(t, enginetest.Options{})
			a, b := w.Pair(local, &abi.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 4, MaxRecvSGE: 4})
			mine, in := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
			b.PostRecv(1, in.SGE(0, 1), in.SGE(1, 1), in.SGE(2, 1), in.SGE(3, 1))
			binary.NativeEndian.PutUint32(b.Mem[b.Layout.RQ.SlotsOffset+8:], claimed)
			a.Post(enginetest.Send(2), mine.SGE(0, 100))
			enginetest.Expect(t, "receive", b.Recv.Completions(1), []uint64{1}, abi.StatusLocQPOpErr)
			x, y := w.Pair(local, nil)
			y.PostRecv(3, in.SGE(0, 0))
			x.Post(enginetest.Send(4))
			enginetest.Expect(t, "another's receive", y.Recv.Completions(1), []uint64{3}, 0)
		}
	})
}

// TestFence: a fenced Send waits for the Reads before it, so it can carry what
// they brought.
func TestFence(t *testing.T) {
	enginetest.Memories(t, func(t *testing.T, local bool,
		register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		w := enginetest.New(t, enginetest.Options{Seed: 22, Path: linked.Path{Delay: 100 * time.Microsecond}})
		a, b := w.Pair(local, nil)
		src, dst := b.Client.Register(1<<20, enginetest.ReadWrite), register(a.Client, 1<<20, enginetest.ReadWrite)
		inbox := b.Client.Register(1<<20, enginetest.ReadWrite)
		for i := range src.Bytes {
			src.Bytes[i] = byte(i*7 + i>>8)
		}
		b.PostRecv(9, inbox.SGE(0, 1<<20))
		a.Post(enginetest.Read(1, src, 0), dst.SGE(0, 1<<20))
		s := enginetest.Send(2)
		s.Flags |= abi.SendFence
		a.Post(s, dst.SGE(0, 1<<20))
		enginetest.Expect(t, "sender", a.Send.Completions(2), []uint64{1, 2}, 0, 0)
		if !bytes.Equal(inbox.Bytes, src.Bytes) {
			t.Error("the fenced Send left before the Read's data were there")
		}
	})
}

// TestUnsignaled: requests without the flag complete silently, free their slots,
// and still report errors.
func TestUnsignaled(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 26})
		a, b := w.Pair(local, nil)
		mine, peer := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
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
		enginetest.Expect(t, "error", a.Send.Completions(1), []uint64{2}, abi.StatusRemAccessErr)
	})
}
