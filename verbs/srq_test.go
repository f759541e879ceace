package verbs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/programtest"
	"urdma/verbs"
)

// pool is a shared receive queue of 8 with a completion queue and memory.
type pool struct {
	x      *verbs.Context
	pd     *verbs.PD
	cq     *verbs.CQ
	srq    *verbs.SRQ
	memory *verbs.MR
}

const poolMessage = 1000

func newPool(t *testing.T, c *verbs.Client) *pool {
	t.Helper()
	p := &pool{x: must(c.Devices()[0].Open())(t)}
	p.cq = must(p.x.CreateCQ(64, must(p.x.CreateCompChannel())(t)))(t)
	p.pd = must(p.x.AllocPD())(t)
	p.memory = must(p.pd.AllocMemory(64*poolMessage, verbs.LocalWrite))(t)
	p.srq = must(p.pd.CreateSRQ(verbs.SRQOptions{RecvWR: 8, RecvSGE: 2}))(t)
	return p
}

func (p *pool) post(n int) error {
	at := n * poolMessage
	return p.srq.PostRecv(&verbs.RecvWR{ID: uint64(n),
		SGE: []verbs.SGE{p.memory.SGE(at, 300), p.memory.SGE(at+300, poolMessage-300)}})
}

// options returns the options of a connection that uses the pool.
func (p *pool) options() verbs.ConnOptions {
	return verbs.ConnOptions{PD: p.pd, RecvCQ: p.cq, QP: verbs.QPOptions{SRQ: p.srq}}
}

// TestSRQ: messages of several connections arrive in one queue, each in its own receive; the limit causes one
// event; invalid calls are refused.
func TestSRQ(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	p := newPool(t, far)
	var pairs []*pair
	for range 3 {
		two := &pair{d: d, near: d.open(), far: far}
		two.connect(t, verbs.ConnOptions{}, p.options())
		pairs = append(pairs, two)
	}
	for n := range 8 {
		ok(t, p.post(n))
	}
	if err := p.post(8); !errors.Is(err, verbs.ErrQueueFull) {
		t.Errorf("a ninth receive: %v", err)
	}
	ok(t, p.srq.SetLimit(6))
	for round := range 6 {
		for i, two := range pairs {
			p.exchange(t, two, round*3+i)
		}
	}
	select {
	case ev := <-p.x.Events():
		if ev.Type != verbs.EventSRQLimitReached || ev.SRQ != p.srq {
			t.Errorf("event %+v", ev)
		}
	case <-patience(t).Done():
		t.Error("no event at the limit")
	}
	if attr := must(p.srq.Query())(t); attr != (verbs.SRQAttr{RecvWR: 8, RecvSGE: 2}) {
		t.Errorf("attributes %+v after the limit's event", attr)
	}
	p.refuses(t, pairs)
}

// TestSRQResize: posted receives and the limit are kept; receives may be posted meanwhile.
func TestSRQResize(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	p := newPool(t, far)
	two := &pair{d: d, near: d.open(), far: far}
	two.connect(t, verbs.ConnOptions{}, p.options())
	for n := range 8 {
		ok(t, p.post(n))
	}
	ok(t, p.srq.SetLimit(2))
	for _, n := range []int{0, -1, 1 << 21, 1 << 20, 7} { // 8 are posted
		if err := p.srq.Resize(n); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("resized to %d: %v", n, err)
		}
	}
	ok(t, p.srq.Resize(9))
	ok(t, p.post(8))
	if err := p.post(9); !errors.Is(err, verbs.ErrQueueFull) {
		t.Errorf("a tenth receive: %v", err)
	}
	if attr := must(p.srq.Query())(t); attr != (verbs.SRQAttr{RecvWR: 9, RecvSGE: 2, Limit: 2}) {
		t.Errorf("attributes %+v", attr)
	}
	stop, resized := make(chan struct{}), make(chan error)
	go func() { resized <- resizeUntil(p.srq, stop) }()
	for n := range 50 {
		p.exchange(t, two, n+3)
	}
	close(stop)
	ok(t, <-resized)
	select {
	case ev := <-p.x.Events():
		t.Errorf("event %+v though more receives waited than the limit", ev)
	default:
	}
	ok(t, two.accepted.Close())
	ok(t, p.srq.Close())
	if err := p.srq.Resize(9); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("resized after its end: %v", err)
	}
}

func resizeUntil(s *verbs.SRQ, stop <-chan struct{}) error {
	for n := 0; ; n++ {
		if err := s.Resize(16 << (n % 3)); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-time.After(300 * time.Microsecond): // the queue's lock is free meanwhile
		}
	}
}

// exchange sends message n through a pair and receives it; every third time the receive is not posted again
// at once, so that fewer than the limit are left.
func (p *pool) exchange(t *testing.T, two *pair, n int) {
	t.Helper()
	from := memory(t, two.dialed, 100+n, true)
	defer from.Close()
	sent := from.Bytes()
	fill(sent, n)
	ok(t, two.dialed.Send(patience(t), from.SGE(0, len(sent))))
	var done [1]verbs.Completion
	must(p.cq.Wait(patience(t), done[:]))(t)
	c := done[0]
	ok(t, c.Err())
	if got := p.memory.Bytes()[c.ID*poolMessage:][:c.ByteLen]; c.QPN != two.accepted.QPN() || !bytes.Equal(got, sent) {
		t.Errorf("message %d: completion %+v, expected queue pair %d", n, c, two.accepted.QPN())
	}
	if n >= 3 {
		ok(t, p.post(int(c.ID)))
	}
}

func (p *pool) refuses(t *testing.T, pairs []*pair) {
	t.Helper()
	if err := p.srq.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing it while queue pairs draw from it: %v", err)
	}
	if err := pairs[0].accepted.PostRecv(&verbs.RecvWR{}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a receive posted to the queue pair: %v", err)
	}
	three := verbs.RecvWR{SGE: []verbs.SGE{p.memory.SGE(0, 1), p.memory.SGE(1, 1), p.memory.SGE(2, 1)}}
	if err := p.srq.PostRecv(&three); !errors.Is(err, verbs.ErrWorkRequest) {
		t.Errorf("a receive of too many elements: %v", err)
	}
	for _, n := range []int{-1, 9} {
		if err := p.srq.SetLimit(n); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("limit %d: %v", n, err)
		}
	}
	if _, err := must(pairs[0].dialed.PD().Context().AllocPD())(t).CreateQP(pairs[0].dialed.SendCQ(),
		pairs[0].dialed.SendCQ(), verbs.QPOptions{SRQ: p.srq}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a queue pair of another client's: %v", err)
	}
	for _, two := range pairs {
		ok(t, two.accepted.Close())
	}
	ok(t, p.srq.Close())
	if err := p.post(0); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("a receive posted to a closed queue: %v", err)
	}
}

// TestSRQPeersKilled: a connection in error does not affect others, and the end of urdmad flushes no receive
// that was not taken.
func TestSRQPeersKilled(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	p := newPool(t, far)
	broken, whole := &pair{d: d, near: d.open(), far: far}, &pair{d: d, near: d.open(), far: far}
	broken.connect(t, verbs.ConnOptions{}, p.options())
	whole.connect(t, verbs.ConnOptions{}, p.options())
	for n := range 8 {
		ok(t, p.post(n))
	}
	ok(t, broken.accepted.Modify(&verbs.QPAttr{QPState: 6}, 1)) // IBV_QPS_ERR, IBV_QP_STATE
	ev := <-p.x.Events()
	if ev.Type != verbs.EventLastWQEReached || ev.QP != broken.accepted.QP {
		t.Errorf("event %+v", ev)
	}
	for n := range 20 {
		p.exchange(t, whole, 3+n)
	}
	d.Kill()
	<-far.Gone()
	if n, err := p.cq.Poll(make([]verbs.Completion, 8)); n != 0 || !errors.Is(err, verbs.ErrGone) {
		t.Errorf("%d completions, %v", n, err)
	}
	if err := p.post(0); !errors.Is(err, verbs.ErrGone) {
		t.Errorf("a receive posted to a urdmad that is gone: %v", err)
	}
}

// TestSRQExample: examples/go/srq with three clients at once and four buffers.
func TestSRQExample(t *testing.T) {
	srq := programtest.Program(t, "urdma/examples/go/srq")
	d := startDaemon(t)
	run := func(args ...string) (*exec.Cmd, *strings.Builder) {
		c, said := exec.CommandContext(patience(t), srq, args...), new(strings.Builder)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.Dir, "URDMA_SOCKET=")
		c.Stdout, c.Stderr = said, said
		ok(t, c.Start())
		return c, said
	}
	const address = "198.18.0.1:7476"
	server, served := run("-listen", address, "-clients", "4", "-pool", "4")
	for range 3000 { // until it listens
		first, heard := run("-n", "1", address)
		if err := first.Wait(); err == nil {
			break
		} else if !strings.Contains(heard.String(), "rejected") {
			t.Fatalf("the first client: %v\n%s", err, heard)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var clients [3]*exec.Cmd
	var heard [3]*strings.Builder
	for i := range clients {
		clients[i], heard[i] = run("-n", "150", address)
	}
	for i, c := range clients {
		if err := c.Wait(); err != nil || !strings.Contains(heard[i].String(), "OK: 150") {
			t.Errorf("client %d: %v\n%s", i, err, heard[i])
		}
	}
	if err := server.Wait(); err != nil || !strings.Contains(served.String(), "OK: 4 clients") {
		t.Errorf("server: %v\n%s", err, served)
	}
}
