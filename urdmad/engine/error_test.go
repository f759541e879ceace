package engine_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

const (
	rw   = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead
	soon = 100 * time.Millisecond
)

// both runs a test over the wire and between two queue pairs of one engine.
func both(t *testing.T, fn func(t *testing.T, local bool)) {
	t.Run("wire", func(t *testing.T) { fn(t, false) })
	t.Run("local", func(t *testing.T) { fn(t, true) })
}

// completions collects from a queue until there are n.
func completions(w *enginetest.World, q *enginetest.CQ, n int) (out []abi.CQE) {
	w.T.Helper()
	w.Until("completions", 20*time.Second, func() bool {
		out = append(out, q.Poll()...)
		return len(out) >= n
	})
	if len(out) != n {
		w.T.Fatalf("%d completions, expected %d: %+v", len(out), n, out)
	}
	return out
}

// expect checks ids and status of completions, in order.
func expect(t *testing.T, what string, got []abi.CQE, ids []uint64, status ...uint32) {
	t.Helper()
	for i := range got {
		if got[i].WRID != ids[i] || got[i].Status != status[i] {
			t.Fatalf("%s: completion %d is id %d status %d, expected id %d status %d (all: %+v)", what, i, got[i].WRID,
				got[i].Status, ids[i], status[i], got)
		}
	}
}

// refusalScene is two connected queue pairs, and memory with every right and
// with too few.
type refusalScene struct {
	w        *enginetest.World
	a, b     *enginetest.QP
	mine     *enginetest.Region // of a
	good     *enginetest.Region // of b, all rights
	readonly *enginetest.Region
	writable *enginetest.Region
	foreign  *enginetest.Region // of another client on b's host
}

// words is memory of b that takes atomics.
func (s *refusalScene) words() *enginetest.Region {
	return s.b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteAtomic)
}

func newRefusalScene(t *testing.T, local bool) *refusalScene {
	w := enginetest.New(t, enginetest.Options{Seed: 3})
	a, b := w.Pair(local, nil)
	s := &refusalScene{w: w, a: a, b: b, mine: a.Client.Register(8192, rw), good: b.Client.Register(8192, rw),
		readonly: b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteRead),
		writable: b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteWrite),
		foreign:  b.Client.Host.NewClient().Register(8192, rw)}
	for i := range s.mine.Bytes {
		s.mine.Bytes[i] = 0xee
	}
	return s
}

// post posts a work request over n bytes of a's memory.
func (s *refusalScene) post(w abi.SQE, n int) { s.a.Post(w, s.mine.SGE(0, n)) }

// refusal is a cause: a request that is refused for it, and what both sides see.
type refusal struct {
	name   string
	code   wire.TermCode
	status uint32
	event  uint32
	post   func(s *refusalScene)
}

var refusals = []refusal{
	{"write invalid STag", wire.TermTaggedSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Write(5, s.good, 0)
		w.RKey ^= 1
		s.post(w, 100)
	}},
	{"write out of bounds", wire.TermTaggedBounds, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Write(5, s.good, 8192-99), 100)
	}},
	{"write before the base", wire.TermTaggedBounds, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Write(5, s.good, -1), 100)
	}},
	{"write wraps", wire.TermTaggedWrap, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Write(5, s.good, 0)
		w.RemoteAddr = ^uint64(0) - 10
		s.post(w, 100)
	}},
	{"write without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Write(5, s.readonly, 0), 100)
	}},
	{"write to another client", wire.TermTaggedStream, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Write(5, s.foreign, 0), 100)
	}},
	{"read invalid STag", wire.TermProtectionSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Read(5, s.good, 0)
		w.RKey ^= 1
		s.post(w, 100)
	}},
	{"read out of bounds", wire.TermProtectionBounds, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Read(5, s.good, 8192-99), 100)
	}},
	{"read wraps", wire.TermProtectionWrap, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Read(5, s.good, 0)
		w.RemoteAddr = ^uint64(0) - 10
		s.post(w, 100)
	}},
	{"read without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Read(5, s.writable, 0), 100)
	}},
	{"read another client", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Read(5, s.foreign, 0), 100)
	}},
	{"no receive", wire.TermUntaggedNoBuffer, abi.StatusRNRRetryExcErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(enginetest.Send(4), 100) // takes the only receive
		s.post(enginetest.Send(5), 100)
	}},
	{"no receive for immediate data", wire.TermUntaggedNoBuffer, abi.StatusRNRRetryExcErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(enginetest.Send(4), 100) // takes the only receive
		s.post(withImm(enginetest.Write(5, s.good, 0), 1), 3000)
	}},
	{"message with immediate data too long", wire.TermUntaggedTooLong, abi.StatusRemInvReqErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(withImm(enginetest.Send(5), 1), 5000)
	}},
	{"atomic without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(fetchAdd(5, s.good, 0, 1), 8)
	}},
	{"atomic invalid STag", wire.TermProtectionSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := fetchAdd(5, s.good, 0, 1)
		w.RKey ^= 1
		s.post(w, 8)
	}},
	{"atomic out of bounds", wire.TermProtectionBounds, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(fetchAdd(5, s.words(), 8192-4, 1), 8)
	}},
	{"atomic on another client's memory", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(fetchAdd(5, s.foreign, 0, 1), 8)
	}},
	{"atomic unaligned", wire.TermOperationStream, abi.StatusRemInvReqErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(fetchAdd(5, s.words(), 4, 1), 8)
	}},
	{"message too long", wire.TermUntaggedTooLong, abi.StatusRemInvReqErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(enginetest.Send(5), 5000)
	}},
	{"invalidate invalid", wire.TermProtectionSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Send(5)
		w.Opcode, w.ImmOrSTag = abi.WRSendWithInv, uint32(s.good.STag)^1
		s.post(w, 100)
	}},
	{"invalidate a region", wire.TermProtectionInvalidate, abi.StatusRemInvReqErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.Invalidate(5, abi.WRSendWithInv, s.good.STag), 100)
	}},
	{"invalidate foreign", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Send(5)
		w.Opcode, w.ImmOrSTag = abi.WRSendWithInv, uint32(s.foreign.STag)
		s.post(w, 100)
	}},
}

// TestRefusals: each cause of a Terminate gives its code on the wire, the right
// status to the work request that caused it, success to those before and a flush
// to those behind, on both sides, and an asynchronous event to the responder.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, local bool) {
				s := newRefusalScene(t, local)
				inbox := s.b.Client.Register(4096, abi.AccessLocalWrite)
				s.b.PostRecv(77, inbox.SGE(0, 4096))
				s.a.Post(enginetest.Write(1, s.good, 100), s.mine.SGE(0, 3000))
				c.post(s)
				s.a.Post(enginetest.Write(6, s.good, 5000), s.mine.SGE(0, 3000))
				s.a.PostRecv(99)
				c.checkSender(t, s)
				c.checkReceiver(t, s, local)
				s.checkMemory(t)
				s.w.Pass(3 * time.Second)
				a, b := s.a, s.b
				if n := len(a.Send.Poll()) + len(a.Recv.Poll()) + len(b.Send.Poll()) + len(b.Recv.Poll()); n != 0 {
					t.Errorf("%d completions too many", n)
				}
				checkQuiet(t, s.w, a, b)
			})
		})
	}
}

func (c *refusal) checkSender(t *testing.T, s *refusalScene) {
	t.Helper()
	want := []uint64{1, 5, 6}
	status := []uint32{0, c.status, abi.StatusWRFlushErr}
	if strings.HasPrefix(c.name, "no receive") {
		want, status = []uint64{1, 4, 5, 6}, []uint32{0, 0, c.status, abi.StatusWRFlushErr}
	}
	got := completions(s.w, s.a.Send, len(want))
	expect(t, "sender", got, want, status...)
	if v := got[len(got)-2].VendorErr; v != uint32(c.code) {
		t.Errorf("vendor error %#x, expected %#x", v, uint32(c.code))
	}
	expect(t, "sender's receive", completions(s.w, s.a.Recv, 1), []uint64{99}, abi.StatusWRFlushErr)
}

func (c *refusal) checkReceiver(t *testing.T, s *refusalScene, local bool) {
	t.Helper()
	streams := s.b.Client.Host.Engine.Streams
	if n := streams.TerminatesSent[c.code]; n != 1 {
		t.Errorf("Terminates sent: %v, expected one of %v", streams.TerminatesSent, c.code)
	}
	if got := s.w.A.Engine.Streams.TerminatesGot; !local && got[c.code] != 1 {
		t.Errorf("Terminates received: %v", got)
	}
	if got := completions(s.w, s.b.Recv, 1); got[0].WRID != 77 {
		t.Errorf("receiver: %+v", got)
	}
	ev := s.b.Client.AsyncEvents()
	if len(ev) != 1 || ev[0].EventType != c.event || ev[0].Handle != s.b.Q.Handle {
		t.Errorf("asynchronous events %+v, expected one of type %d", ev, c.event)
	}
	s.a.Client.Event(abi.CMDisconnected, time.Second)
	s.b.Client.Event(abi.CMDisconnected, time.Second)
	if s.a.Q.State() != abi.QPSErr || s.b.Q.State() != abi.QPSErr {
		t.Errorf("states %d and %d, expected error", s.a.Q.State(), s.b.Q.State())
	}
}

// checkMemory: what was refused, and what came after it, wrote nothing.
func (s *refusalScene) checkMemory(t *testing.T) {
	t.Helper()
	for i, x := range s.foreign.Bytes {
		if x != 0 {
			t.Fatalf("another client's byte %d was written", i)
		}
	}
	for i, x := range s.good.Bytes[3100:] {
		if x != 0 {
			t.Fatalf("byte %d was written by a refused or later request", 3100+i)
		}
	}
}

// checkQuiet checks that ended connections left nothing behind: their port
// numbers are free and no packet is held.
func checkQuiet(t *testing.T, w *enginetest.World, qps ...*enginetest.QP) {
	t.Helper()
	for _, h := range []*enginetest.Host{w.A, w.B} {
		for port := range 1 << 16 {
			if h.Engine.TRP.Port(0).Conn(uint16(port)) != nil {
				t.Errorf("host %s: port number %d is still in use", h.Name, port)
			}
		}
		if n := h.Port.Outstanding(); n > 32 {
			t.Errorf("host %s: %d packets are still held", h.Name, n)
		}
	}
}

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
		{"read into what is not writable", abi.StatusLocProtErr, func(a *enginetest.QP, mine, foreign, peer *enginetest.Region) {
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
			both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, enginetest.Options{Seed: 4})
				a, b := w.Pair(local, nil)
				mine, peer := a.Client.Register(8192, rw), b.Client.Register(8192, rw)
				foreign := a.Client.Host.NewClient().Register(8192, rw)
				a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 5000))
				c.post(a, mine, foreign, peer)
				a.Post(enginetest.Write(6, peer, 0), mine.SGE(0, 5000))
				expect(t, "sender", completions(w, a.Send, 3), []uint64{1, 5, 6}, 0, c.status, abi.StatusWRFlushErr)
				a.Client.Event(abi.CMDisconnected, time.Second)
				b.Client.Event(abi.CMDisconnected, time.Second)
				w.Pass(3 * time.Second)
				checkQuiet(t, w)
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
	big, peer := a.Client.Register(part, abi.AccessLocalWrite), b.Client.Register(4096, rw)
	var list []abi.SGE
	for range 32 {
		list = append(list, big.SGE(0, part))
	}
	a.Post(enginetest.Write(1, peer, 0), list...)
	expect(t, "sender", completions(w, a.Send, 1), []uint64{1}, abi.StatusLocLenErr)
	if n := w.B.Engine.Streams.SegmentsPlaced; n != 0 {
		t.Errorf("%d segments went out", n)
	}
}

// TestReceiveListTooLong: a slot of the receive queue that claims more elements than
// the queue pair may have, written past the library, fails the receive.
func TestReceiveListTooLong(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		for _, claimed := range []uint32{5, 31, 1 << 31, ^uint32(0)} {
			w := enginetest.New(t, enginetest.Options{})
			a, b := w.Pair(local, &abi.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 4, MaxRecvSGE: 4})
			mine, in := a.Client.Register(4096, rw), b.Client.Register(4096, rw)
			b.PostRecv(1, in.SGE(0, 1), in.SGE(1, 1), in.SGE(2, 1), in.SGE(3, 1))
			binary.NativeEndian.PutUint32(b.Mem[b.Layout.RQ.SlotsOffset+8:], claimed)
			a.Post(enginetest.Send(2), mine.SGE(0, 100))
			expect(t, "receive", completions(w, b.Recv, 1), []uint64{1}, abi.StatusLocQPOpErr)
			x, y := w.Pair(local, nil)
			y.PostRecv(3, in.SGE(0, 0))
			x.Post(enginetest.Send(4))
			expect(t, "another's receive", completions(w, y.Recv, 1), []uint64{3}, 0)
		}
	})
}
