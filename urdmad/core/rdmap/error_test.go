package rdmap_test

import (
	"strings"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// refusalScene is two connected queue pairs, and memory with all rights and with some missing.
type refusalScene struct {
	w        *enginetest.World
	a, b     *enginetest.QP
	mine     *enginetest.Region // of a
	good     *enginetest.Region // of b, all rights
	readonly *enginetest.Region
	writable *enginetest.Region
	foreign  *enginetest.Region // of another client on b's host
}

// memory of b for atomics
func (s *refusalScene) words() *enginetest.Region {
	return s.b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteAtomic)
}

func newRefusalScene(t *testing.T, local bool) *refusalScene {
	w := enginetest.New(t, enginetest.Options{Seed: 3})
	a, b := w.Pair(local, nil)
	s := &refusalScene{w: w, a: a, b: b, mine: a.Client.Register(8192, enginetest.ReadWrite),
		good:     b.Client.Register(8192, enginetest.ReadWrite),
		readonly: b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteRead),
		writable: b.Client.Register(8192, abi.AccessLocalWrite|abi.AccessRemoteWrite),
		foreign:  b.Client.Host.NewClient().Register(8192, enginetest.ReadWrite)}
	for i := range s.mine.Bytes {
		s.mine.Bytes[i] = 0xee
	}
	return s
}

// post posts a work request over n bytes of a's memory.
func (s *refusalScene) post(w abi.SQE, n int) { s.a.Post(w, s.mine.SGE(0, n)) }

// refusal is a cause of refusal with a request that is refused for it, and the results on both sides.
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
	{"write without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.Write(5, s.readonly, 0), 100)
		}},
	{"write to another client", wire.TermTaggedStream, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
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
	{"read without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.Read(5, s.writable, 0), 100)
		}},
	{"read another client", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.Read(5, s.foreign, 0), 100)
		}},
	{"no receive", wire.TermUntaggedNoBuffer, abi.StatusRNRRetryExcErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(enginetest.Send(4), 100) // takes the only receive
		s.post(enginetest.Send(5), 100)
	}},
	{"no receive for immediate data", wire.TermUntaggedNoBuffer, abi.StatusRNRRetryExcErr, abi.EventQPReqErr,
		func(s *refusalScene) {
			s.post(enginetest.Send(4), 100) // takes the only receive
			s.post(enginetest.WithImmediate(enginetest.Write(5, s.good, 0), 1), 3000)
		}},
	{"message with immediate data too long", wire.TermUntaggedTooLong, abi.StatusRemInvReqErr, abi.EventQPReqErr,
		func(s *refusalScene) {
			s.post(enginetest.WithImmediate(enginetest.Send(5), 1), 5000)
		}},
	{"atomic without the right", wire.TermProtectionAccess, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.FetchAdd(5, s.good, 0, 1), 8)
		}},
	{"atomic invalid STag", wire.TermProtectionSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.FetchAdd(5, s.good, 0, 1)
		w.RKey ^= 1
		s.post(w, 8)
	}},
	{"atomic out of bounds", wire.TermProtectionBounds, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.FetchAdd(5, s.words(), 8192-4, 1), 8)
		}},
	{"atomic on another client's memory", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.FetchAdd(5, s.foreign, 0, 1), 8)
		}},
	{"atomic unaligned", wire.TermOperationStream, abi.StatusRemInvReqErr, abi.EventQPAccessErr, func(s *refusalScene) {
		s.post(enginetest.FetchAdd(5, s.words(), 4, 1), 8)
	}},
	{"message too long", wire.TermUntaggedTooLong, abi.StatusRemInvReqErr, abi.EventQPReqErr, func(s *refusalScene) {
		s.post(enginetest.Send(5), 5000)
	}},
	{"invalidate invalid", wire.TermProtectionSTag, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Send(5)
		w.Opcode, w.ImmOrSTag = abi.WRSendWithInv, uint32(s.good.STag)^1
		s.post(w, 100)
	}},
	{"invalidate a region", wire.TermProtectionInvalidate, abi.StatusRemInvReqErr, abi.EventQPAccessErr,
		func(s *refusalScene) {
			s.post(enginetest.Invalidate(5, abi.WRSendWithInv, s.good.STag), 100)
		}},
	{"invalidate foreign", wire.TermProtectionStream, abi.StatusRemAccessErr, abi.EventQPAccessErr, func(s *refusalScene) {
		w := enginetest.Send(5)
		w.Opcode, w.ImmOrSTag = abi.WRSendWithInv, uint32(s.foreign.STag)
		s.post(w, 100)
	}},
}

// TestRefusals: each cause of a Terminate gives its code on the wire, the right status to the work request that
// caused it, success to those before it and a flush to those after it, on both sides, and an asynchronous event to
// the responder.
func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
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
				s.w.CheckQuiet()
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
	got := s.a.Send.Completions(len(want))
	enginetest.Expect(t, "sender", got, want, status...)
	if v := got[len(got)-2].VendorErr; v != uint32(c.code) {
		t.Errorf("vendor error %#x, expected %#x", v, uint32(c.code))
	}
	enginetest.Expect(t, "sender's receive", s.a.Recv.Completions(1), []uint64{99}, abi.StatusWRFlushErr)
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
	if got := s.b.Recv.Completions(1); got[0].WRID != 77 {
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

// checkMemory verifies that the refused request and later ones wrote nothing.
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
