package qp_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// slowScene is a target whose memory is on the fallback path and takes nothing until
// unblock.
type slowScene struct {
	*enginetest.World
	a, b      *enginetest.QP
	src, sink *enginetest.Region
	unblock   func()
}

func newSlowScene(t *testing.T, local bool) *slowScene {
	s := &slowScene{World: enginetest.New(t, enginetest.Options{Seed: 60, BlockedPages: true})}
	s.a, s.b = s.Pair(local, nil)
	s.src, s.sink = s.a.Client.Register(20000, enginetest.ReadWrite),
		s.b.Client.RegisterFallback(20000, enginetest.ReadWrite)
	for i := range s.src.Bytes {
		s.src.Bytes[i] = byte(i*7 + i>>8)
	}
	s.unblock = blocked(t, s.World, s.b.Client)
	return s
}

// nothing checks that no send completes while the memory takes nothing.
func (s *slowScene) nothing(q *enginetest.QP) {
	s.T.Helper()
	s.Pass(50 * time.Millisecond)
	if e := q.Send.Poll(); len(e) > 0 {
		s.T.Fatalf("completed before a byte was written: %+v", e)
	}
}

// TestVisibleWhenCompleted: what was written is in the target's memory when its writer
// polls the completion, whichever way urdmad has to that memory; a Read behind it finds
// it there, also by another region of the same memory.
func TestVisibleWhenCompleted(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newSlowScene(t, local)
		in, back := s.b.Client.Register(100, enginetest.ReadWrite), s.a.Client.Register(20000, enginetest.ReadWrite)
		s.b.PostRecv(9, in.SGE(0, 100))
		s.a.Post(enginetest.Write(1, s.sink, 0), s.src.SGE(0, 20000))
		s.a.Post(enginetest.Send(2), s.src.SGE(0, 100))
		s.a.Post(enginetest.Read(3, in, 0), back.SGE(0, 100))
		s.nothing(s.a)
		if back.Bytes[1] != 0 {
			t.Error("a Read passed the Write in front of it")
		}
		s.unblock()
		enginetest.Expect(t, "sender", s.a.Send.Completions(3), []uint64{1, 2, 3}, 0, 0, 0)
		enginetest.Expect(t, "receiver", s.b.Recv.Completions(1), []uint64{9}, 0)
		if !bytes.Equal(s.sink.Bytes, s.src.Bytes) || !bytes.Equal(back.Bytes[:100], s.src.Bytes[:100]) {
			t.Error("other bytes")
		}
	})
}

// TestWriteInFrontOfRefusal: a work request that is refused fails alone: the Write in
// front of it completes, once it is there.
func TestWriteInFrontOfRefusal(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newSlowScene(t, local)
		forbidden := s.b.Client.Register(8, abi.AccessLocalWrite)
		s.a.Post(enginetest.Write(1, s.sink, 0), s.src.SGE(0, 20000))
		s.a.Post(enginetest.Write(2, forbidden, 0), s.src.SGE(0, 8))
		s.a.Post(enginetest.Write(3, s.sink, 0), s.src.SGE(100, 8))
		s.nothing(s.a)
		s.unblock()
		enginetest.Expect(t, "sender", s.a.Send.Completions(3), []uint64{1, 2, 3}, 0, abi.StatusRemAccessErr,
			abi.StatusWRFlushErr)
		if !bytes.Equal(s.sink.Bytes, s.src.Bytes) {
			t.Error("other bytes")
		}
	})
}

// TestRefusalIsNotHeldUpForEver: memory that takes nothing delays a refusal for a
// second at most.
func TestRefusalIsNotHeldUpForEver(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newSlowScene(t, local)
		s.a.Post(enginetest.Write(1, s.sink, 0), s.src.SGE(0, 8))
		s.a.Post(enginetest.Write(2, s.b.Client.Register(8, abi.AccessLocalWrite), 0), s.src.SGE(0, 8))
		s.b.Client.Event(abi.CMDisconnected, 2*time.Second)
		s.a.Send.Completions(2)
		s.unblock()
	})
}

// TestLostWrite: a Write to memory that is not there any more does not complete as one
// that was carried out.
func TestLostWrite(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 61})
		a, b := w.Pair(local, nil)
		src, in := a.Client.Register(8192, enginetest.ReadWrite), b.Client.Register(8, enginetest.ReadWrite)
		b.PostRecv(9, in.SGE(0, 8))
		a.Post(enginetest.Write(1, b.Client.RegisterMissing(8192, enginetest.ReadWrite), 0), src.SGE(0, 8192))
		a.Post(enginetest.Send(2), src.SGE(0, 8))
		for _, e := range a.Send.Completions(2) {
			if e.Status == abi.StatusSuccess {
				t.Errorf("sender: %+v", e)
			}
		}
		if e := b.Recv.Completions(1)[0]; e.Status == abi.StatusSuccess {
			t.Errorf("receiver: %+v", e)
		}
	})
}

// TestXRCSlowMember: what is written to the memory of one member of an XRC domain is
// waited for, however fast the memory of another is.
func TestXRCSlowMember(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newXRCSceneOn(t, enginetest.Options{Seed: 62, RNRRetry: 7, BlockedPages: true},
			(*enginetest.Client).RegisterFallback)
		i := 0
		if local {
			i = 1
		}
		peer, out := s.peers[i], s.out[i]
		unblock := blocked(t, s.w, s.srq[0].Client)
		s.post(1, 0)
		peer.Post(enginetest.Write(1, s.inbox[0], 0), out.SGE(0, 3000))
		peer.Post(enginetest.Write(2, s.inbox[1], srqMessage), out.SGE(0, 3000))
		peer.Post(enginetest.SendTo(3, s.srq[1]), out.SGE(0, 100))
		for range 50 {
			s.w.Pass(time.Millisecond)
			time.Sleep(time.Millisecond) // the other member's jobs take real time
		}
		if e := append(peer.Send.Poll(), s.recv[1].Poll()...); len(e) > 0 {
			t.Fatalf("completed before the slow member's memory was written: %+v", e)
		}
		unblock()
		enginetest.Expect(t, "sender", peer.Send.Completions(3), []uint64{1, 2, 3}, 0, 0, 0)
		s.recv[1].Completions(1)
		if !bytes.Equal(s.inbox[0].Bytes[:3000], out.Bytes[:3000]) {
			t.Error("other bytes")
		}
	})
}
