package engine_test

import (
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

// xrcScene is an XRC domain that two clients of a host share, each with a queue in
// its own protection domain, and peers that reach both by one queue pair each: over
// the wire and within the engine.
type xrcScene struct {
	w       *enginetest.World
	domain  *qp.Domain
	srq     [2]*enginetest.SRQ
	recv    [2]*enginetest.CQ
	inbox   [2]*enginetest.Region
	peers   [2]*enginetest.QP
	out     [2]*enginetest.Region
	targets [2]*enginetest.QP
}

const xrcSlots = 6

func newXRCScene(t *testing.T, seed uint64) *xrcScene {
	s := &xrcScene{w: enginetest.New(t, enginetest.Options{Seed: seed, RNRRetry: 7}), domain: qp.NewDomain()}
	for i := range s.srq {
		server := s.w.B.NewClient()
		s.recv[i] = server.NewCQ(256)
		s.srq[i] = server.NewNamed(s.domain, xrcSlots, s.recv[i])
		s.inbox[i] = server.Register(2*xrcSlots*srqMessage, rw)
	}
	for i, host := range []*enginetest.Host{s.w.A, s.w.B} {
		s.peers[i], s.targets[i] = host.NewClient().NewInitiator(), s.srq[i].Client.NewTarget(s.domain)
		enginetest.Join(s.peers[i], s.targets[i], 4)
		s.out[i] = s.peers[i].Client.Register(srqMessage, rw)
		for j := range s.out[i].Bytes {
			s.out[i].Bytes[j] = byte(i*31 + j*7)
		}
	}
	return s
}

func (s *xrcScene) post(queue int, n uint64) bool {
	in := s.inbox[queue]
	return s.srq[queue].Post(n, in.SGE(int(n)*srqMessage, 100), in.SGE(int(n)*srqMessage+100, srqMessage-100))
}

// from is which peer a completion of a queue is of; its message has to be whole.
func (s *xrcScene) from(queue int, e *abi.CQE) int {
	s.w.T.Helper()
	for i, q := range s.targets {
		if e.QPNum != q.Q.QPN {
			continue
		}
		got := s.inbox[queue].Bytes[int(e.WRID)*srqMessage:][:e.ByteLen]
		if e.Status != 0 || string(got) != string(s.out[i].Bytes[:e.ByteLen]) {
			s.w.T.Fatalf("queue %d: %+v is not what peer %d sent", queue, *e, i)
		}
		return i
	}
	s.w.T.Fatalf("queue %d: %+v of no target", queue, *e)
	return 0
}

// TestXRC: by one queue pair each, peers send to the queues of two clients in any
// order; every message arrives once, whole, in the queue that it names.
func TestXRC(t *testing.T) {
	const messages = 80
	for seed := uint64(1); seed <= seeds(3); seed++ {
		s := newXRCScene(t, 300+seed)
		s.w.SetPath(lossy)
		var free [2][]uint64
		for n := range uint64(2 * xrcSlots) {
			free[0], free[1] = append(free[0], n), append(free[1], n)
		}
		var sent, got [2][2]int // by peer and queue
		total := 0
		s.w.Until("all messages", 60*time.Second, func() bool {
			for i, q := range s.peers {
				q.Send.Poll()
				queue := s.w.Rand.IntN(2)
				if all := sent[i][0] + sent[i][1]; all < messages && all-got[i][0]-got[i][1] < 8 {
					q.Post(enginetest.SendTo(1, s.srq[queue]), s.out[i].SGE(0, srqMessage-all))
					sent[i][queue]++
				}
			}
			for queue := range s.srq {
				for len(free[queue]) > 0 && s.w.Rand.IntN(3) > 0 && s.post(queue, free[queue][0]) {
					free[queue] = free[queue][1:]
				}
				for _, e := range s.recv[queue].Poll() {
					got[s.from(queue, &e)][queue]++
					free[queue] = append(free[queue], e.WRID)
					total++
				}
			}
			return total == len(s.peers)*messages
		})
		if sent != got {
			t.Errorf("seed %d: sent %v by peer and queue, got %v", seed, sent, got)
		}
	}
}

// TestXRCImmediate: immediate data names its queue, too, behind Sends and Writes.
func TestXRCImmediate(t *testing.T) {
	s := newXRCScene(t, 310)
	for i, peer := range s.peers {
		for queue, srq := range s.srq {
			s.post(queue, 0)
			s.post(queue, 1)
			send := enginetest.SendTo(1, srq)
			send.Opcode, send.ImmOrSTag = abi.WRSendWithImm, uint32(100+queue)
			peer.Post(send, s.out[i].SGE(0, 3000))
			write := enginetest.Write(2, s.inbox[queue], srqMessage)
			write.Opcode, write.ImmOrSTag, write.RemoteSRQN = abi.WRRDMAWriteWithImm, uint32(200+queue), srq.Q.Shared().Number
			peer.Post(write, s.out[i].SGE(0, 2000))
			expect(t, "sends", completions(s.w, peer.Send, 2), []uint64{1, 2}, 0, 0)
			e := completions(s.w, s.recv[queue], 2)
			if e[0].ImmOrSTag != send.ImmOrSTag || e[0].ByteLen != 3000 || e[1].ImmOrSTag != write.ImmOrSTag || e[1].ByteLen != 2000 ||
				e[0].QPNum != s.targets[i].Q.QPN || e[0].UserHandle != 0 {
				t.Errorf("peer %d, queue %d: %+v", i, queue, e)
			}
		}
	}
}

// TestXRCMemory: peers reach the memory of every client with a queue in the domain,
// and nobody else's.
func TestXRCMemory(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, 320)
		peer, out := s.peers[0], s.out[0]
		if local {
			peer, out = s.peers[1], s.out[1]
		}
		for queue := range s.srq {
			peer.Post(enginetest.Write(1, s.inbox[queue], 0), out.SGE(0, 100))
			peer.Post(enginetest.Read(2, s.inbox[queue], 0), out.SGE(200, 100))
			expect(t, "Write and Read", completions(s.w, peer.Send, 2), []uint64{1, 2}, 0, 0)
			if string(out.Bytes[200:300]) != string(out.Bytes[:100]) {
				t.Error("other bytes")
			}
		}
		stranger := s.w.B.NewClient().Register(100, rw)
		peer.Post(enginetest.Write(3, stranger, 0), out.SGE(0, 100))
		expect(t, "a stranger's memory", completions(s.w, peer.Send, 1), []uint64{3}, abi.StatusRemAccessErr)
	})
}

// TestXRCNoQueue: a message for a queue that is not there, or no more, fails its
// sender's queue pair alone; a queue that goes in the midst of a message fails its
// target, and a completion queue may go after it.
func TestXRCNoQueue(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, 330)
		peer, other, i := s.peers[0], s.peers[1], 0
		if local {
			peer, other, i = other, peer, 1
		}
		s.post(0, 0)
		peer.Post(enginetest.SendTo(1, s.srq[0]), s.out[i].SGE(0, 10))
		expect(t, "Send", completions(s.w, peer.Send, 1), []uint64{1}, 0)
		s.from(0, &completions(s.w, s.recv[0], 1)[0])
		s.srq[1].Remove()
		s.post(1, 1)
		peer.Post(enginetest.SendTo(2, s.srq[1]), s.out[i].SGE(0, 10))
		expect(t, "Send to a queue that is gone", completions(s.w, peer.Send, 1), []uint64{2}, abi.StatusRemInvReqErr)
		s.post(0, 2)
		other.Post(enginetest.SendTo(3, s.srq[0]), s.out[1-i].SGE(0, 10))
		expect(t, "Send of the other peer", completions(s.w, other.Send, 1), []uint64{3}, 0)
		if s.from(0, &completions(s.w, s.recv[0], 1)[0]) != 1-i {
			t.Error("of the wrong peer")
		}
	})
}

// TestXRCTypes: Sends between an XRC queue pair and one of type RC are refused, and
// a Send with Invalidate is not sent.
func TestXRCTypes(t *testing.T) {
	both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, 340)
		host := s.w.A
		if local {
			host = s.w.B
		}
		rc, target := host.NewClient().NewQP(nil), s.srq[0].Client.NewTarget(s.domain)
		enginetest.Join(rc, target, 4)
		s.post(0, 0)
		rc.Post(enginetest.Send(1))
		expect(t, "Send of type RC", completions(s.w, rc.Send, 1), []uint64{1}, abi.StatusRemInvReqErr)

		initiator, server := host.NewClient().NewInitiator(), s.w.B.NewClient().NewQP(nil)
		enginetest.Join(initiator, server, 4)
		server.PostRecv(1)
		initiator.Post(enginetest.SendTo(2, s.srq[0]))
		if e := completions(s.w, initiator.Send, 1)[0]; e.Status == abi.StatusSuccess {
			t.Errorf("Send of type XRC_SEND to one of type RC: %+v", e)
		}

		w := enginetest.SendTo(3, s.srq[0])
		w.Opcode = abi.WRSendWithInv
		s.peers[0].Post(w)
		expect(t, "Send with Invalidate", completions(s.w, s.peers[0].Send, 1), []uint64{3}, abi.StatusLocQPOpErr)
	})
}

// TestXRCReferences: a target lives until its last reference is gone, and all hear
// its events.
func TestXRCReferences(t *testing.T) {
	s := newXRCScene(t, 350)
	q, second := s.targets[0], s.srq[1].Client
	ref := &qp.Target{Async: second.Async.Engine, Handle: 77}
	q.Q.References.Add(ref)
	if found := s.w.B.Engine.QPs.Target(s.domain, q.Q.QPN); found != q.Q {
		t.Fatal("not found by its number")
	}
	if s.w.B.Engine.QPs.Target(qp.NewDomain(), q.Q.QPN) != nil {
		t.Error("found in another domain")
	}
	q.Destroy()
	s.post(1, 0)
	s.peers[0].Post(enginetest.SendTo(1, s.srq[1]), s.out[0].SGE(0, 100))
	s.from(1, &completions(s.w, s.recv[1], 1)[0])
	s.w.B.Do(func() { q.Q.Fail(qp.EventFatal) })
	s.w.Pass(time.Millisecond)
	if e := second.AsyncEvents(); len(e) != 1 || e[0].EventType != abi.EventQPFatal || e[0].Handle != 77 {
		t.Errorf("events %+v", e)
	}
	if e := q.Client.AsyncEvents(); len(e) != 0 {
		t.Errorf("events %+v for who has no reference any more", e)
	}
	s.w.B.Do(func() {
		if q.Q.References.Remove(ref) {
			s.w.B.Engine.QPs.Remove(q.Q)
		}
	})
	if s.w.B.Engine.QPs.Target(s.domain, q.Q.QPN) != nil {
		t.Error("still there without references")
	}
}
