package qp_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

const srqMessage = 5000

// srqScene is a server with one shared receive queue and several peers, over the
// wire and within its engine.
type srqScene struct {
	w       *enginetest.World
	srq     *enginetest.SRQ
	recv    *enginetest.CQ
	inbox   *enginetest.Region
	servers []*enginetest.QP
	peers   []*enginetest.QP
	out     []*enginetest.Region
}

func newSRQScene(t *testing.T, seed, slots uint64, peers int, limit uint32) *srqScene {
	w := enginetest.New(t, enginetest.Options{Seed: seed, RNRRetry: 7})
	server := w.B.NewClient()
	s := &srqScene{w: w, srq: server.NewSRQ(uint32(slots), limit), recv: server.NewCQ(256),
		inbox: server.Register(int(slots)*2*srqMessage, abi.AccessLocalWrite)}
	for i := range peers {
		host := w.A
		if i%2 == 1 {
			host = w.B
		}
		peer, q := host.NewClient().NewQP(nil), s.srq.NewQP(s.recv)
		enginetest.Join(peer, q, 4)
		peer.Q.Connection().RNRRetry, q.Q.Connection().RNRRetry = 7, 7
		out := peer.Client.Register(srqMessage, enginetest.ReadWrite)
		for j := range out.Bytes {
			out.Bytes[j] = byte(i*31 + j)
		}
		s.servers, s.peers, s.out = append(s.servers, q), append(s.peers, peer), append(s.out, out)
	}
	return s
}

// post posts a receive into room n of the inbox, with n as its id.
func (s *srqScene) post(n uint64) bool {
	return s.srq.Post(n, s.inbox.SGE(int(n)*srqMessage, 100), s.inbox.SGE(int(n)*srqMessage+100, srqMessage-100))
}

// check checks that a completed receive holds all of its sender's message, and
// returns whose it is.
func (s *srqScene) check(e *abi.CQE, length int) int {
	s.w.T.Helper()
	for i, q := range s.servers {
		if q.Q.QPN != e.QPNum {
			continue
		}
		got := s.inbox.Bytes[int(e.WRID)*srqMessage:]
		if e.Status != 0 || int(e.ByteLen) != length || string(got[:length]) != string(s.out[i].Bytes[:length]) {
			s.w.T.Fatalf("completion %+v: not what peer %d sent", *e, i)
		}
		return i
	}
	s.w.T.Fatalf("completion %+v of an unknown queue pair", *e)
	return 0
}

// TestSharedReceives: peers over a lossy wire and within the engine send as fast
// as the shared queue has receives; each receive is used once and holds one
// message whole.
func TestSharedReceives(t *testing.T) {
	const peers, messages, slots = 5, 60, 8
	for seed := uint64(1); seed <= enginetest.Seeds(4); seed++ {
		s := newSRQScene(t, 100+seed, slots, peers, 0)
		s.w.SetPath(enginetest.Lossy)
		var free []uint64
		for n := range uint64(2 * slots) {
			free = append(free, n)
		}
		var sent, got [peers]int
		total := 0
		s.w.Until("all messages", 60*time.Second, func() bool {
			for len(free) > 0 && s.w.Rand.IntN(4) > 0 && s.post(free[0]) {
				free = free[1:]
			}
			for i, q := range s.peers {
				q.Send.Poll()
				if sent[i] < messages && sent[i]-got[i] < 4 {
					q.Post(enginetest.Send(1), s.out[i].SGE(0, srqMessage-sent[i]%3))
					sent[i]++
				}
			}
			for _, e := range s.recv.Poll() {
				i := s.whose(&e)
				s.check(&e, srqMessage-got[i]%3)
				got[i]++
				free = append(free, e.WRID)
				total++
			}
			return total == peers*messages
		})
	}
}

func (s *srqScene) whose(e *abi.CQE) int {
	for i, q := range s.servers {
		if q.Q.QPN == e.QPNum {
			return i
		}
	}
	return -1
}

// TestSharedReceivesRunOut: a message without a receive holds its queue pair alone;
// Writes of another go on.
func TestSharedReceivesRunOut(t *testing.T) {
	s := newSRQScene(t, 120, 4, 4, 0)
	target := s.srq.Client.Register(64, enginetest.ReadWrite)
	for _, i := range []int{0, 1} {
		s.peers[i].Post(enginetest.Send(7), s.out[i].SGE(0, 1000))
	}
	s.w.Pass(50 * time.Millisecond)
	for _, i := range []int{2, 3} {
		s.peers[i].Post(enginetest.Write(8, target, 8*i), s.out[i].SGE(0, 8))
		enginetest.Expect(t, "Write beside it", s.peers[i].Send.Completions(1), []uint64{8}, 0)
	}
	if n := len(s.recv.Poll()); n != 0 {
		t.Fatalf("%d completions without a receive", n)
	}
	s.post(0)
	s.post(1)
	for _, e := range s.recv.Completions(2) {
		s.check(&e, 1000)
	}
}

// TestSharedReceiveEvents: the limit raises one event and is gone; a queue pair in
// error says that its last receive has completed, and the others go on.
func TestSharedReceiveEvents(t *testing.T) {
	s := newSRQScene(t, 121, 8, 2, 3)
	for n := range uint64(4) {
		s.post(n)
	}
	client := s.srq.Client
	for n := range 3 {
		s.peers[n%2].Post(enginetest.Send(1), s.out[n%2].SGE(0, 1000))
		s.recv.Completions(1)
		events := client.AsyncEvents()
		if n == 1 && (len(events) != 1 || events[0].EventType != abi.EventSRQLimitReached ||
			events[0].Handle != s.srq.Q.Shared().Handle) ||
			n != 1 && len(events) != 0 {
			t.Fatalf("events %+v after %d receives of 4, with a limit of 3", events, n+1)
		}
	}
	if s.srq.Q.Shared().Limit != 0 {
		t.Error("the limit stays after its event")
	}
	if err := s.servers[0].Modify(abi.QPSErr); err != nil {
		t.Fatal(err)
	}
	s.w.Pass(time.Millisecond)
	events := client.AsyncEvents()
	if len(events) != 1 || events[0].EventType != abi.EventQPLastWQEReached || events[0].Handle != s.servers[0].Q.Handle {
		t.Errorf("events %+v of a queue pair in error", events)
	}
	s.peers[1].Post(enginetest.Send(1), s.out[1].SGE(0, 1000))
	got := s.recv.Completions(1)
	s.check(&got[0], 1000)
}

// TestHostileSharedQueue: whatever a client scribbles into its shared receive
// queue, the engine and other clients go on.
func TestHostileSharedQueue(t *testing.T) {
	for seed := uint64(1); seed <= enginetest.Seeds(10); seed++ {
		s := newSRQScene(t, 140+seed, 8, 2, 0)
		r := rand.New(rand.NewPCG(seed, 5))
		x, y := s.w.Pair(false, nil)
		in := y.Client.Register(64, enginetest.ReadWrite)
		for range 200 {
			switch r.IntN(3) {
			case 0:
				s.srq.Mem[r.IntN(len(s.srq.Mem))] = byte(r.Uint32())
			case 1:
				s.post(uint64(r.IntN(8)))
			}
			if q := s.peers[r.IntN(2)]; q.Q.State() == abi.QPSRTS && q.Ring.SQ.Free() > 0 {
				q.Post(enginetest.Send(1), s.out[0].SGE(0, 0))
			}
			s.w.Pass(time.Duration(r.IntN(2000)) * time.Microsecond)
			s.recv.Poll()
			for _, q := range s.peers {
				q.Send.Poll()
			}
		}
		y.PostRecv(1, in.SGE(0, 64))
		x.Post(enginetest.Send(2))
		enginetest.Expect(t, "another client's receive", y.Recv.Completions(1), []uint64{1}, 0)
	}
}

// TestSharedLayout: the queue lies in its memory.
func TestSharedLayout(t *testing.T) {
	l := ring.SRQLayout(100, 3)
	if l.RQ.Entries != 128 || l.RQ.Stride != 64 || l.Bytes < l.RQ.SlotsOffset+128*64 {
		t.Errorf("layout %+v", l)
	}
}
