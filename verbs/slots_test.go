package verbs_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"urdma/verbs"
	"urdma/verbs/abi"
)

const slotDepth = 16

// tight is a connection with completion queues of as many entries as the queue that completes on each.
func tight(t testing.TB) *pair {
	t.Helper()
	d := startDaemon(t)
	p := &pair{d: d, near: d.open(), far: d.open()}
	p.connect(t, tightOptions(t, p.near), tightOptions(t, p.far))
	return p
}

func tightOptions(t testing.TB, c *verbs.Client) verbs.ConnOptions {
	x := must(c.Devices()[0].Open())(t)
	return verbs.ConnOptions{QP: verbs.QPOptions{SendWR: slotDepth, RecvWR: slotDepth},
		PD: must(x.AllocPD())(t), SendCQ: must(x.CreateCQ(slotDepth, nil))(t), RecvCQ: must(x.CreateCQ(slotDepth, nil))(t)}
}

// posted posts until the queue is full, giving urdmad time to complete work before it decides that, and
// returns how many were posted.
func (d *daemon) posted(t testing.TB, post func() error) (n int) {
	t.Helper()
	for ; n < 4*slotDepth; n++ {
		err := post()
		if err != nil {
			d.settle(t)
			err = post()
		}
		if errors.Is(err, verbs.ErrQueueFull) {
			return n
		}
		ok(t, err)
	}
	return n
}

// polled takes exactly n completions.
func polled(t testing.TB, q *verbs.CQ, n int, status verbs.Status) {
	t.Helper()
	var one [1]verbs.Completion
	for end := time.Now().Add(time.Minute); n > 0; {
		got, err := q.Poll(one[:])
		ok(t, err)
		if got > 0 && one[0].Status != status {
			t.Fatalf("%+v, expected status %v", one[0], status)
		}
		if n -= got; got == 0 && time.Now().After(end) {
			t.Fatalf("%d completions are missing", n)
		}
	}
}

// TestSlotsAreFreeWhenPolled: a program that does not poll runs out of slots, and does not overrun a
// completion queue as large as its queue.
func TestSlotsAreFreeWhenPolled(t *testing.T) {
	p := tight(t)
	there := memory(t, p.accepted, 4096, true)
	flags := verbs.Signaled
	write := func() error {
		return p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: flags, Inline: []byte{1}, Remote: there.Remote(0)})
	}
	get := func() error { return p.accepted.PostRecv(&verbs.RecvWR{}) }
	say := func() error { return p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled}) }
	full := func(what string, post func() error, want int) {
		t.Helper()
		if n := p.d.posted(t, post); n != want {
			t.Errorf("%s: %d were taken, expected %d", what, n, want)
		}
	}
	for range 3 {
		full("an empty send queue", write, slotDepth)
		polled(t, p.dialed.SendCQ(), 1, verbs.StatusSuccess)
		full("after a poll", write, 1)
		polled(t, p.dialed.SendCQ(), slotDepth, verbs.StatusSuccess)
		full("an empty receive queue", get, slotDepth)
		full("messages", say, slotDepth)
		full("received, not polled", get, 0)
		polled(t, p.accepted.RecvCQ(), 3, verbs.StatusSuccess)
		full("after three polls", get, 3)
		polled(t, p.accepted.RecvCQ(), slotDepth-3, verbs.StatusSuccess)
		polled(t, p.dialed.SendCQ(), slotDepth, verbs.StatusSuccess)
		for range 3 {
			ok(t, say())
		}
		polled(t, p.accepted.RecvCQ(), 3, verbs.StatusSuccess)
		polled(t, p.dialed.SendCQ(), 3, verbs.StatusSuccess)
	}
	flags = 0
	full("unsignaled", write, 4*slotDepth)
	p.d.settle(t) // otherwise some would be flushed
	ok(t, p.dialed.Modify(&verbs.QPAttr{QPState: abi.QPSErr}, abi.QPMaskState))
	for range 3 {
		full("unsignaled in the error state", write, slotDepth)
		polled(t, p.dialed.SendCQ(), slotDepth, verbs.StatusWRFlushErr)
	}
	if n, err := p.dialed.SendCQ().Poll(make([]verbs.Completion, 1)); n != 0 || err != nil {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// TestSlotsOfTheNextQueuePair: completions of a closed or reset queue pair free no slots of another one, or
// of itself after the reset.
func TestSlotsOfTheNextQueuePair(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	x := must(c.Devices()[0].Open())(t)
	q := must(x.CreateCQ(2*slotDepth, nil))(t)
	pd := must(x.AllocPD())(t)
	failed := func(p *verbs.QP) *verbs.QP {
		ok(t, p.Modify(&verbs.QPAttr{QPState: abi.QPSErr}, abi.QPMaskState))
		return p
	}
	post := func(p *verbs.QP) func() error { return func() error { return p.PostRecv(&verbs.RecvWR{}) } }
	fill := func(p *verbs.QP) {
		t.Helper()
		if n := d.posted(t, post(p)); n != slotDepth {
			t.Fatalf("%d receives were taken, expected %d", n, slotDepth)
		}
	}
	make1 := func() *verbs.QP {
		return must(pd.CreateQP(q, q, verbs.QPOptions{SendWR: slotDepth, RecvWR: slotDepth}))(t)
	}
	kept := failed(make1())
	fill(kept)
	for range 10 {
		p := failed(make1())
		fill(p)
		ok(t, p.Modify(&verbs.QPAttr{QPState: abi.QPSReset}, abi.QPMaskState))
		ok(t, p.Modify(&verbs.QPAttr{QPState: abi.QPSInit, PortNum: 1},
			abi.QPMaskState|abi.QPMaskPort|abi.QPMaskPKeyIndex|abi.QPMaskAccessFlags))
		failed(p)
		fill(p)
		ok(t, p.Close())
	}
	if n := d.posted(t, post(kept)); n != 0 {
		t.Errorf("%d slots were freed by another's completions", n)
	}
	polled(t, q, slotDepth, verbs.StatusWRFlushErr)
	fill(kept)
}

// TestEveryCompletionOnce kills urdmad at any moment: each posted receive and each signaled send has exactly
// one completion.
func TestEveryCompletionOnce(t *testing.T) {
	rounds := 10
	if os.Getenv("URDMA_LONG") != "" {
		rounds = 300
	}
	for range rounds {
		killedRound(t)
	}
}

func killedRound(t *testing.T) {
	p := tight(t)
	random := rand.New(rand.NewPCG(uint64(p.d.Cmd.Process.Pid), 0))
	t.Logf("seed %d", p.d.Cmd.Process.Pid)
	sends, gets := map[uint64]int{}, map[uint64]int{} // completions expected, by ID
	silent := map[uint64]bool{}
	out := make([]verbs.Completion, 8)
	take := func(q *verbs.CQ, due map[uint64]int) (more bool) {
		n, err := q.Poll(out[:1+random.IntN(8)])
		for i := range out[:n] {
			due[out[i].ID]--
		}
		return err == nil
	}
	delay := time.Duration(random.IntN(3000)) * time.Microsecond
	go func() {
		time.Sleep(delay)
		p.d.Kill()
	}()
	for id := uint64(0); ; id++ {
		flags := verbs.Signaled
		if random.IntN(2) == 0 {
			flags = 0
		}
		if err := p.accepted.PostRecv(&verbs.RecvWR{ID: id}); err == nil {
			gets[id]++
		}
		err := p.dialed.PostSend(&verbs.SendWR{ID: id, Op: verbs.OpSend, Flags: flags})
		if err == nil && flags != 0 {
			sends[id]++
		}
		silent[id] = flags == 0
		if random.IntN(2) == 0 {
			take(p.dialed.SendCQ(), sends)
			take(p.accepted.RecvCQ(), gets)
		}
		if errors.Is(err, verbs.ErrGone) {
			break
		}
		runtime.Gosched()
	}
	for take(p.dialed.SendCQ(), sends) || take(p.accepted.RecvCQ(), gets) {
	}
	for id, due := range sends {
		if due != 0 && !(silent[id] && due == -1) { // flushed, because urdmad had not completed it
			t.Errorf("send %d lacks %d completions", id, due)
		}
	}
	for id, due := range gets {
		if due != 0 {
			t.Errorf("receive %d lacks %d completions", id, due)
		}
	}
}
