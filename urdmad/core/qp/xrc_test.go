package qp_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
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
	sinks   [2][2]*enginetest.Region // of Writes, by peer and queue
	peers   [2]*enginetest.QP
	out     [2]*enginetest.Region
	targets [2]*enginetest.QP
}

const xrcSlots = 6

func newXRCScene(t *testing.T, o enginetest.Options) *xrcScene {
	return newXRCSceneOn(t, o, (*enginetest.Client).Register)
}

// onWires runs a test on each wire that carries XRC.
func onWires(t *testing.T, seed uint64, test func(*testing.T, enginetest.Options)) {
	for name, roce := range map[string]bool{"trp": false, "rocev2": true} {
		t.Run(name, func(t *testing.T) { test(t, enginetest.Options{Seed: seed, RNRRetry: 7, RoCE: roce}) })
	}
}

func newXRCSceneOn(t *testing.T, o enginetest.Options,
	register func(*enginetest.Client, int, uint32) *enginetest.Region) *xrcScene {
	s := &xrcScene{w: enginetest.New(t, o), domain: qp.NewDomain()}
	for i := range s.srq {
		server := s.w.B.NewClient()
		s.recv[i] = server.NewCQ(256)
		s.srq[i] = server.NewNamed(s.domain, xrcSlots, s.recv[i])
		s.inbox[i] = register(server, 2*xrcSlots*srqMessage, enginetest.ReadWrite)
		s.sinks[0][i], s.sinks[1][i] = register(server, srqMessage, enginetest.ReadWrite),
			register(server, srqMessage, enginetest.ReadWrite)
	}
	for i, host := range []*enginetest.Host{s.w.A, s.w.B} {
		s.peers[i], s.targets[i] = host.NewClient().NewInitiator(), s.srq[i].Client.NewTarget(s.domain)
		enginetest.Join(s.peers[i], s.targets[i], 4)
		s.out[i] = register(s.peers[i].Client, srqMessage, enginetest.ReadWrite)
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

// written is the id of a Write to the memory of a queue's client; others are those of Sends.
func written(queue int) uint64 { return uint64(100 + queue) }

// write has a peer write to the memory of a queue's client.
func (s *xrcScene) write(peer, queue int) {
	clear(s.sinks[peer][queue].Bytes)
	s.peers[peer].Post(enginetest.Write(written(queue), s.sinks[peer][queue], 0), s.out[peer].SGE(0, srqMessage))
}

// sent takes what a peer's sends complete with; what was written has to be there.
func (s *xrcScene) sent(peer int, busy *[2]bool) {
	s.w.T.Helper()
	for _, e := range s.peers[peer].Send.Poll() {
		if e.Status != 0 {
			s.w.T.Fatalf("peer %d: %+v", peer, e)
		}
		for queue := range s.srq {
			if e.WRID == written(queue) {
				busy[queue] = false
				if !bytes.Equal(s.sinks[peer][queue].Bytes, s.out[peer].Bytes) {
					s.w.T.Fatalf("peer %d: a Write to the client of queue %d completed and is not there", peer, queue)
				}
			}
		}
	}
}

// memories are the ways to register memory.
var memories = []func(*enginetest.Client, int, uint32) *enginetest.Region{
	(*enginetest.Client).Register, (*enginetest.Client).RegisterFallback, (*enginetest.Client).RegisterFile}

// TestXRC: by one queue pair each, peers send to the queues of two clients in any
// order, and write to their memory; every message arrives once, whole, in the queue that
// it names, and what was written is there when the Write completes, in memory of any kind.
func TestXRC(t *testing.T) {
	const messages = 80
	for seed := uint64(1); seed <= enginetest.Seeds(6); seed++ {
		kinds := rand.New(rand.NewPCG(seed, 7))
		s := newXRCSceneOn(t, enginetest.Options{Seed: 300 + seed, RNRRetry: 7, RoCE: seed%2 == 0},
			func(c *enginetest.Client, n int, access uint32) *enginetest.Region {
				return memories[kinds.IntN(len(memories))](c, n, access)
			})
		s.w.SetPath(enginetest.Lossy)
		var writing [2][2]bool // by peer and queue
		var free [2][]uint64
		for n := range uint64(2 * xrcSlots) {
			free[0], free[1] = append(free[0], n), append(free[1], n)
		}
		var sent, got [2][2]int // by peer and queue
		total := 0
		s.w.Until("all messages", 60*time.Second, func() bool {
			for i, q := range s.peers {
				s.sent(i, &writing[i])
				queue := s.w.Rand.IntN(2)
				if !writing[i][queue] && s.w.Rand.IntN(3) == 0 {
					s.write(i, queue)
					writing[i][queue] = true
				}
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
func TestXRCImmediate(t *testing.T) { onWires(t, 310, testXRCImmediate) }

func testXRCImmediate(t *testing.T, o enginetest.Options) {
	s := newXRCScene(t, o)
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
			enginetest.Expect(t, "sends", peer.Send.Completions(2), []uint64{1, 2}, 0, 0)
			e := s.recv[queue].Completions(2)
			if e[0].ImmOrSTag != send.ImmOrSTag || e[0].ByteLen != 3000 || e[1].ImmOrSTag != write.ImmOrSTag ||
				e[1].ByteLen != 2000 ||
				e[0].QPNum != s.targets[i].Q.QPN || e[0].UserHandle != 0 {
				t.Errorf("peer %d, queue %d: %+v", i, queue, e)
			}
		}
	}
}

// TestXRCMemory: peers reach the memory of every client with a queue in the domain,
// and nobody else's.
func TestXRCMemory(t *testing.T) { onWires(t, 320, testXRCMemory) }

func testXRCMemory(t *testing.T, o enginetest.Options) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, o)
		peer, out := s.peers[0], s.out[0]
		if local {
			peer, out = s.peers[1], s.out[1]
		}
		for queue := range s.srq {
			peer.Post(enginetest.Write(1, s.inbox[queue], 0), out.SGE(0, 100))
			peer.Post(enginetest.Read(2, s.inbox[queue], 0), out.SGE(200, 100))
			enginetest.Expect(t, "Write and Read", peer.Send.Completions(2), []uint64{1, 2}, 0, 0)
			if string(out.Bytes[200:300]) != string(out.Bytes[:100]) {
				t.Error("other bytes")
			}
		}
		stranger := s.w.B.NewClient().Register(100, enginetest.ReadWrite)
		peer.Post(enginetest.Write(3, stranger, 0), out.SGE(0, 100))
		enginetest.Expect(t, "a stranger's memory", peer.Send.Completions(1), []uint64{3}, abi.StatusRemAccessErr)
	})
}

// TestXRCNoQueue: a message for a queue that is not there, or no more, fails its
// sender's queue pair alone; a queue that goes in the midst of a message fails its
// target, and a completion queue may go after it.
func TestXRCNoQueue(t *testing.T) { onWires(t, 330, testXRCNoQueue) }

func testXRCNoQueue(t *testing.T, o enginetest.Options) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, o)
		peer, other, i := s.peers[0], s.peers[1], 0
		if local {
			peer, other, i = other, peer, 1
		}
		s.post(0, 0)
		peer.Post(enginetest.SendTo(1, s.srq[0]), s.out[i].SGE(0, 10))
		enginetest.Expect(t, "Send", peer.Send.Completions(1), []uint64{1}, 0)
		s.from(0, &s.recv[0].Completions(1)[0])
		s.srq[1].Remove()
		s.post(1, 1)
		peer.Post(enginetest.SendTo(2, s.srq[1]), s.out[i].SGE(0, 10))
		enginetest.Expect(t, "Send to a queue that is gone", peer.Send.Completions(1), []uint64{2}, abi.StatusRemInvReqErr)
		s.post(0, 2)
		other.Post(enginetest.SendTo(3, s.srq[0]), s.out[1-i].SGE(0, 10))
		enginetest.Expect(t, "Send of the other peer", other.Send.Completions(1), []uint64{3}, 0)
		if s.from(0, &s.recv[0].Completions(1)[0]) != 1-i {
			t.Error("of the wrong peer")
		}
	})
}

// TestXRCTypes: Sends between an XRC queue pair and one of type RC are refused, and
// a Send with Invalidate is not sent.
func TestXRCTypes(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		s := newXRCScene(t, enginetest.Options{Seed: 340, RNRRetry: 7})
		host := s.w.A
		if local {
			host = s.w.B
		}
		rc, target := host.NewClient().NewQP(nil), s.srq[0].Client.NewTarget(s.domain)
		enginetest.Join(rc, target, 4)
		s.post(0, 0)
		rc.Post(enginetest.Send(1))
		enginetest.Expect(t, "Send of type RC", rc.Send.Completions(1), []uint64{1}, abi.StatusRemInvReqErr)

		initiator, server := host.NewClient().NewInitiator(), s.w.B.NewClient().NewQP(nil)
		enginetest.Join(initiator, server, 4)
		server.PostRecv(1)
		initiator.Post(enginetest.SendTo(2, s.srq[0]))
		if e := initiator.Send.Completions(1)[0]; e.Status == abi.StatusSuccess {
			t.Errorf("Send of type XRC_SEND to one of type RC: %+v", e)
		}

		w := enginetest.SendTo(3, s.srq[0])
		w.Opcode = abi.WRSendWithInv
		s.peers[0].Post(w)
		enginetest.Expect(t, "Send with Invalidate", s.peers[0].Send.Completions(1), []uint64{3}, abi.StatusLocQPOpErr)
	})
}

// TestXRCReferences: a target lives until its last reference is gone, and all hear
// its events.
func TestXRCReferences(t *testing.T) {
	s := newXRCScene(t, enginetest.Options{Seed: 350, RNRRetry: 7})
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
	s.from(1, &s.recv[1].Completions(1)[0])
	s.w.B.Do(func() { q.Q.Fail(qp.EventFatal, reason.Memory) })
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

// TestXRCQueueRemovedBesideAnother: a receive that waits for its memory completes, if it
// is another queue's than the one that is removed, even if both complete on one queue.
func TestXRCQueueRemovedBesideAnother(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 355, RNRRetry: 7, BlockedPages: true})
		d := qp.NewDomain()
		server := w.B.NewClient()
		cq := server.NewCQ(64)
		first, second := server.NewNamed(d, 4, cq), server.NewNamed(d, 4, cq)
		inbox := server.RegisterFallback(4096, enginetest.ReadWrite)
		host := w.A
		if local {
			host = w.B
		}
		peer, target := host.NewClient().NewInitiator(), server.NewTarget(d)
		enginetest.Join(peer, target, 4)
		out := peer.Client.Register(4096, enginetest.ReadWrite)
		unblock := blocked(t, w, server)
		first.Post(1, inbox.SGE(0, 1000))
		peer.Post(enginetest.SendTo(1, first), out.SGE(0, 1000))
		w.Pass(5 * time.Millisecond)
		second.Remove()
		unblock()
		w.Pass(5 * time.Millisecond)
		if e := cq.Poll(); len(e) != 1 {
			t.Errorf("the receive of the queue that is left: %d completions", len(e))
		}
	})
}

// TestXRCBacklogIsTheMembers: what waits for the memory of one member of an XRC domain
// counts for that client, not for the one that made the target queue pair, whose other
// connections go on.
func TestXRCBacklogIsTheMembers(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 81, RNRRetry: 7, BlockedPages: true})
		d := qp.NewDomain()
		creator, member := w.B.NewClient(), w.B.NewClient()
		creator.NewNamed(d, 4, creator.NewCQ(64))
		queue := member.NewNamed(d, 64, member.NewCQ(256))
		inbox := member.RegisterFallback(1<<20, enginetest.ReadWrite)
		host := w.A
		if local {
			host = w.B
		}
		peer, target := host.NewClient().NewInitiator(), creator.NewTarget(d)
		enginetest.Join(peer, target, 4)
		out := peer.Client.Register(1<<20, enginetest.ReadWrite)
		other, own := host.NewClient().NewQP(nil), creator.NewQP(nil)
		enginetest.Join(other, own, 4)
		src, sink := other.Client.Register(4096, enginetest.ReadWrite), creator.Register(4096, enginetest.ReadWrite)
		unblock := blocked(t, w, member)
		for i := range uint64(24) {
			queue.Post(i, inbox.SGE(0, 1<<20))
			peer.Post(enginetest.SendTo(i, queue), out.SGE(0, 1<<20))
		}
		w.Pass(100 * time.Millisecond)
		if n := creator.E.Unwritten(); n != 0 {
			t.Errorf("%d bytes count for who made the target", n)
		}
		// a wire's window is shorter
		if n := member.E.Unwritten(); n == 0 || local && n < qp.MaxUnwritten || n > mostWaiting {
			t.Errorf("%d bytes wait to be written, expected about %d", n, qp.MaxUnwritten)
		}
		own.PostRecv(1, sink.SGE(0, 4096))
		other.Post(enginetest.Send(1), src.SGE(0, 100))
		w.Pass(time.Second)
		if e := own.Recv.Poll(); len(e) != 1 {
			t.Errorf("a message to another queue pair of the creator's, into memory that is there: %d completions after 1 s",
				len(e))
		}
		unblock()
	})
}

// TestXRCMemoriesOfTwoSpeeds: a receive of one member completes once its own bytes are
// written, however fast those of another member are that came later.
func TestXRCMemoriesOfTwoSpeeds(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 357, RNRRetry: 7, BlockedPages: true})
		d := qp.NewDomain()
		slow, fast := w.B.NewClient(), w.B.NewClient()
		cqs := []*enginetest.CQ{slow.NewCQ(8), fast.NewCQ(8)}
		queues := []*enginetest.SRQ{slow.NewNamed(d, 4, cqs[0]), fast.NewNamed(d, 4, cqs[1])}
		inboxes := []*enginetest.Region{slow.RegisterFallback(4096, enginetest.ReadWrite),
			fast.RegisterFallback(4096, enginetest.ReadWrite)}
		host := w.A
		if local {
			host = w.B
		}
		peer, target := host.NewClient().NewInitiator(), fast.NewTarget(d)
		enginetest.Join(peer, target, 4)
		out := peer.Client.Register(4096, enginetest.ReadWrite)
		unblock := blocked(t, w, slow)
		for i, q := range queues {
			q.Post(uint64(i), inboxes[i].SGE(0, 1000))
			peer.Post(enginetest.SendTo(uint64(i), q), out.SGE(0, 1000))
		}
		for range 20 {
			w.Pass(time.Millisecond)
			time.Sleep(time.Millisecond)
		}
		if n := len(cqs[0].Poll()); n > 0 {
			t.Errorf("%d receives completed whose memory is not written", n)
		}
		unblock()
		for _, cq := range cqs {
			cq.Completions(1)
		}
	})
}
