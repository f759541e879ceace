package injector

import (
	"slices"
	"testing"
	"time"

	"urdma/inject"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// breaks applies a rule to a client of a simulated network.
func breaks(t *testing.T, e *enginetest.Client, text string) (*client, *rule) {
	t.Helper()
	statements, err := inject.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	w := &control.Worker{Engine: e.Host.Engine}
	n := newInjector(newServer(w), Config{})
	c := &client{x: &control.Session{}, qp: &e.E.Client}
	i := &rule{Draw: inject.NewDraw(statements[0].Rule), by: &account.Owner{Admin: true}}
	n.workers[w].add(c)
	n.workers[w].make(i)
	return c, i
}

// TestOneLateEvent: at most one completion event of a queue is delayed at a time, however often its program arms, and
// none of a queue that was destroyed.
func TestOneLateEvent(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 61})
	a, b := w.Pair(false, nil)
	c, _ := breaks(t, a.Client, "event delay=10s count=all")
	mem, sink := a.Client.Register(8, enginetest.ReadWrite), b.Client.Register(8, enginetest.ReadWrite)
	cq := a.Q.SendCQ
	for range 5 {
		a.Send.Ring.Arm(false)
		a.Post(enginetest.Write(1, sink, 0), mem.SGE(0, 8))
		a.Send.Completions(1)
	}
	if cq.Events != 0 {
		t.Fatalf("%d events before their time", cq.Events)
	}
	w.Pass(11 * time.Second)
	if cq.Events != 1 {
		t.Errorf("%d events, expected 1", cq.Events)
	}
	a.Send.Ring.Arm(false)
	a.Post(enginetest.Write(1, sink, 0), mem.SGE(0, 8))
	a.Send.Completions(1)
	c.forgetQueue(cq)
	w.Pass(11 * time.Second)
	if cq.Events != 1 {
		t.Errorf("%d events, expected 1: the queue is gone", cq.Events)
	}
}

// TestWritesAreAskedOnce: each RDMA Write counts once, regardless of its pieces and its end.
func TestWritesAreAskedOnce(t *testing.T) {
	for name, o := range map[string]enginetest.Options{"TRP": {}, "RoCEv2": {RoCE: true}} {
		n := enginetest.ConnectedPairIn(enginetest.New(t, o), false, 7)
		_, writes := breaks(t, n.QB.Client, "respond opcode=RDMA_WRITE answer=ACCESS nth=100")
		for i := range uint64(6) {
			n.QB.PostRecv(i)
			w := enginetest.Write(i, n.MB, 0)
			if i%2 == 0 {
				w.Opcode = abi.WRRDMAWriteWithImm
			}
			n.QA.Post(w, n.MA.SGE(0, 5000))
			n.QA.Send.Completions(1)
		}
		if writes.Seen != 6 {
			t.Errorf("%s: %d Writes were counted, expected 6", name, writes.Seen)
		}
	}
}

// TestWriteOfAnEarlierConnection: a Write that was interrupted by its connection's end is not taken for the first
// Write of the next connection.
func TestWriteOfAnEarlierConnection(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{})
	_, b := w.Pair(false, nil)
	c, writes := breaks(t, b.Client, "respond opcode=RDMA_WRITE answer=ACCESS nth=100")
	c.Write(b.Q, nil, 0, nil)
	c.Connected(b.Q)
	c.Write(b.Q, nil, 0, nil)
	if writes.Seen != 2 {
		t.Errorf("%d Writes were counted, expected 2", writes.Seen)
	}
}

// posts records how many Reads are outstanding at each posted send.
type posts struct {
	*client
	reads []uint32
}

func (p *posts) Posted(q *qp.QP, i, _ uint32) { p.reads = append(p.reads, readsWith(q, i)) }

// TestReadsUnderWay: with any number of posted Reads, each counts at most as many as the queue pair has outstanding
// at once.
func TestReadsUnderWay(t *testing.T) {
	n := enginetest.ConnectedPairIn(enginetest.New(t, enginetest.Options{}), false, 7)
	c, _ := breaks(t, n.QA.Client, "strict attributes")
	p := &posts{client: c}
	c.qp.Interceptor = p
	n.QA.Q.Attr.MaxRdAtomic = 3
	var want []uint32
	for i := range uint64(20) {
		n.QA.Post(enginetest.Read(2*i, n.MB, 0), n.MA.SGE(0, 8))
		n.QA.Post(enginetest.Write(2*i+1, n.MB, 0), n.MA.SGE(0, 8))
		want = append(want, uint32(min(i+1, 3)), 0)
	}
	n.QA.Send.Completions(40)
	if !slices.Equal(p.reads, want) {
		t.Errorf("%d, expected %d", p.reads, want)
	}
}
