package verbs_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
	"urdma/verbs/abi"
)

// join connects two queue pairs by number.
func join(t *testing.T, a, b *end) {
	t.Helper()
	ok(t, errors.Join(a.ConnectNumber(b.Number()), b.ConnectNumber(a.Number())))
}

// TestResizeCQ: waiting completions are in the new queue, in order, and an armed queue stays armed; no
// completion is lost at any size.
func TestResizeCQ(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{SendWR: 200}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	most := c.Devices()[0].MaxCQE
	for what, n := range map[string]int{"none": 0, "too many": most + 1} {
		if err := from.cq.Resize(n); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ok(t, from.cq.Arm(false))
	ok(t, from.cq.Resize(256))
	if n := from.cq.Entries(); n < 256 {
		t.Errorf("%d entries, expected 256 at least", n)
	}
	write := func(n int) {
		for i := range n {
			ok(t, from.PostSend(&verbs.SendWR{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: []byte("x"),
				Remote: to.memory.Remote(0)}))
		}
	}
	write(100)
	<-from.cq.Events()
	ok(t, from.PostSend(&verbs.SendWR{ID: 100, Op: verbs.OpRead, Flags: verbs.Signaled | verbs.Fence,
		Remote: to.memory.Remote(0), SGE: []verbs.SGE{from.memory.SGE(0, 1)}}))
	// until the Read, and all work before it, is complete
	for ctx := patience(t); from.memory.Bytes()[0] == 0; time.Sleep(time.Millisecond) {
		ok(t, ctx.Err())
	}
	if err := from.cq.Resize(50); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("smaller than what waits: %v", err)
	}
	ok(t, from.cq.Resize(most))
	for i := range 101 {
		if got := from.next(t, verbs.StatusSuccess); got.ID != uint64(i) {
			t.Fatalf("completion %d, expected %d", got.ID, i)
		}
	}
	ok(t, from.cq.Resize(1))
}

// TestResizeCQAfterOverrun: a queue that has lost completions still reports that after a resize.
func TestResizeCQAfterOverrun(t *testing.T) {
	d := startDaemon(t)
	to := newEnd(t, d.open(), verbs.QPOptions{})
	x := to.PD().Context()
	cq := must(x.CreateCQ(1, nil))(t)
	from := must(to.PD().CreateQP(cq, to.cq, verbs.QPOptions{}))(t)
	ok(t, errors.Join(from.ConnectNumber(to.Number()), to.ConnectNumber(from.Number())))
	for range cq.Entries() + 1 {
		ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: []byte("x"),
			Remote: to.memory.Remote(0)}))
	}
	for e := range x.Events() {
		if e.Type == verbs.EventCQErr && e.CQ == cq {
			break
		}
	}
	waiting := make([]verbs.Completion, cq.Entries())
	ok(t, cq.Resize(64))
	if n, err := cq.Poll(waiting); n != len(waiting) || err != nil {
		t.Errorf("%d completions wait, expected %d: %v", n, len(waiting), err)
	}
	if n, err := cq.Poll(waiting); n != 0 || !errors.Is(err, verbs.ErrOverrun) {
		t.Errorf("%d completions of a queue that lost one: %v", n, err)
	}
}

// TestOverrunWakesAll: each goroutine that waits for a queue gets the error that completions were lost.
func TestOverrunWakesAll(t *testing.T) {
	const waiters = 4
	d := startDaemon(t)
	to := newEnd(t, d.open(), verbs.QPOptions{})
	x := to.PD().Context()
	cq := must(x.CreateCQ(1, must(x.CreateCompChannel())(t)))(t)
	from := must(to.PD().CreateQP(cq, to.cq, verbs.QPOptions{}))(t)
	ok(t, errors.Join(from.ConnectNumber(to.Number()), to.ConnectNumber(from.Number())))
	ended, ctx, entries := make(chan error, waiters), patience(t), cq.Entries()
	for range waiters {
		go func() {
			var one [1]verbs.Completion
			for {
				if _, err := cq.Wait(ctx, one[:]); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	for cq.Waiters() < waiters {
		time.Sleep(time.Millisecond)
	}
	cq.WhileNobodyPolls(func() {
		for range entries + 1 {
			ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: []byte("x"),
				Remote: to.memory.Remote(0)}))
		}
		for e := range x.Events() {
			if e.Type == verbs.EventCQErr && e.CQ == cq {
				break
			}
		}
	})
	for i := range waiters {
		if err := <-ended; !errors.Is(err, verbs.ErrOverrun) {
			t.Fatalf("goroutine %d of %d: %v, expected ErrOverrun", i, waiters, err)
		}
	}
}

// TestResizeCQWhilePolled: a queue may be resized while it is polled, waited for and filled.
func TestResizeCQWhilePolled(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{SendWR: 32}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	stop := make(chan struct{})
	var resizing sync.WaitGroup
	resizing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := from.cq.Resize(64 << (i % 3)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for round := range 30 {
		for i := range 32 {
			ok(t, from.PostSend(&verbs.SendWR{ID: uint64(round*32 + i), Op: verbs.OpWrite, Flags: verbs.Signaled,
				Inline: []byte("x"), Remote: to.memory.Remote(0)}))
		}
		for i := range 32 {
			if got := from.next(t, verbs.StatusSuccess); got.ID != uint64(round*32+i) {
				t.Fatalf("completion %d, expected %d", got.ID, round*32+i)
			}
		}
	}
	close(stop)
	resizing.Wait()
}

// TestChangeAccess: a region keeps its keys and gets other rights, which apply to peers.
func TestChangeAccess(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	for _, m := range []*verbs.MR{must(to.PD().AllocMemory(64, verbs.LocalWrite))(t),
		must(to.PD().RegisterMemory(make([]byte, 64), verbs.LocalWrite))(t)} {
		before, lkey := m.Remote(3), m.LKey()
		ok(t, m.ChangeAccess(verbs.LocalWrite|verbs.RemoteWrite))
		if m.Remote(3) != before || m.LKey() != lkey {
			t.Errorf("the region was %+v and is %+v", before, m.Remote(3))
		}
		to.receive(t, 0, 0) // its completion comes after the data was written
		ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWriteWithImm, Flags: verbs.Signaled, Inline: []byte("new"),
			Remote: before}))
		from.next(t, verbs.StatusSuccess)
		to.next(t, verbs.StatusSuccess)
		if got := string(m.Bytes()[3:6]); got != "new" {
			t.Errorf("written %q", got)
		}
		if err := m.ChangeAccess(verbs.RemoteWrite); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("remote writing without local: %v", err)
		}
		ok(t, m.ChangeAccess(verbs.LocalWrite))
		ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: []byte("old"), Remote: before}))
		from.next(t, verbs.StatusRemAccessErr)
		ok(t, m.Close())
		for _, e := range []*end{from, to} {
			ok(t, e.Modify(&verbs.QPAttr{QPState: abi.QPSReset}, abi.QPMaskState))
			ok(t, e.Modify(&verbs.QPAttr{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: uint32(verbs.RemoteWrite)},
				abi.QPMaskState|abi.QPMaskPKeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags))
		}
		join(t, from, to)
	}
	if err := must(to.PD().AllocNull())(t).ChangeAccess(verbs.LocalWrite); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("rights of a null region: %v", err)
	}
}

// TestZeroBased: addresses in such a region begin at 0, for peers and for its own work requests.
func TestZeroBased(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	there := must(to.PD().AllocMemory(64, verbs.LocalWrite|verbs.RemoteWrite|verbs.ZeroBased))(t)
	here := must(from.PD().RegisterMemory([]byte("zero-based"), verbs.ZeroBased))(t)
	if there.Addr() != 0 || there.Remote(7).Addr != 7 || here.SGE(5, 5).Addr != 5 {
		t.Errorf("a region at %#x, %+v, %+v", there.Addr(), there.Remote(7), here.SGE(5, 5))
	}
	ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{here.SGE(5, 5)},
		Remote: there.Remote(7)}))
	from.next(t, verbs.StatusSuccess)
	if got := string(there.Bytes()[7:12]); got != "based" {
		t.Errorf("written %q", got)
	}
}

// TestSQDrained: the event after a move to SQD.
func TestSQDrained(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	from, to := newEnd(t, c, verbs.QPOptions{}), newEnd(t, c, verbs.QPOptions{})
	join(t, from, to)
	ok(t, from.Modify(&verbs.QPAttr{QPState: abi.QPSSQD, EnSQDAsyncNotify: 1}, abi.QPMaskState|abi.QPMaskEnSQDAsyncNotify))
	if e := <-from.PD().Context().Events(); e.Type != verbs.EventSQDrained || e.QP != from.QP {
		t.Errorf("event %+v", e)
	}
}

// TestDeviceQuery: a query returns the same again if nothing has changed.
func TestDeviceQuery(t *testing.T) {
	d := startDaemon(t)
	device := d.open().Devices()[0]
	again := must(device.Query())(t)
	if again == device || again.Prefix != device.Prefix || again.MTU != device.MTU || !again.Up || again.MaxSRQ == 0 ||
		again.MaxMW == 0 {
		t.Errorf("first %+v, then %+v", device, again)
	}
	must(again.Open())(t)
	d.Kill()
	if _, err := device.Query(); !errors.Is(err, verbs.ErrGone) {
		t.Errorf("after urdmad's end: %v", err)
	}
}

// TestMark: a mark is accepted, and an empty one refused.
func TestMark(t *testing.T) {
	c := startDaemon(t).open()
	ok(t, c.Mark("here"))
	if err := c.Mark(""); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an empty bookmark: %v", err)
	}
}
