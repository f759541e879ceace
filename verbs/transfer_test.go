package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
	"urdma/verbs/abi"
)

// TestMessages: 1000 messages of random lengths in each direction at once, verified, with both kinds of
// memory, waiting with and without polling.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		shared bool
		spin   time.Duration
	}{{"shared", true, 0}, {"fallback", false, 0}, {"polling", true, time.Millisecond}} {
		t.Run(c.name, func(t *testing.T) {
			p := connect(t, verbs.ConnOptions{Spin: c.spin}, verbs.ConnOptions{Spin: c.spin})
			var both sync.WaitGroup
			both.Go(func() { stream(t, p.dialed, p.accepted, c.shared, 1) })
			both.Go(func() { stream(t, p.accepted, p.dialed, c.shared, 2) })
			both.Wait()
		})
	}
}

// TestNullRegion: reads of a region without memory return 0, and data written to it is discarded.
func TestNullRegion(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	in, out := memory(t, p.accepted, 300, true), memory(t, p.dialed, 300, true)
	fill(in.Bytes(), 1)
	fill(out.Bytes(), 2)
	want := append([]byte(nil), out.Bytes()...)
	clear(want[100:200])
	null := must(p.dialed.PD().AllocNull())(t)
	lost := must(p.accepted.PD().AllocNull())(t)
	ok(t, p.accepted.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{lost.SGE(1<<40, 50), in.SGE(50, 250)}}))
	ok(t, p.dialed.Send(patience(t), out.SGE(0, 100), null.SGE(5, 100), out.SGE(200, 100)))
	got := must(p.accepted.Recv(patience(t)))(t)
	ok(t, got.Err())
	if !bytes.Equal(in.Bytes()[50:], want[50:]) || bytes.Equal(in.Bytes()[:50], want[:50]) {
		t.Error("the message did not arrive as it was sent, but for its first 50 bytes")
	}
	ok(t, null.Close())
	ok(t, lost.Close())
}

func stream(t *testing.T, from, to *verbs.Conn, shared bool, seed uint64) {
	const messages, room, slots = 1000, 16384, 8
	t.Logf("seed %d", seed)
	lengths := rand.New(rand.NewPCG(seed, 0))
	sizes := make([]int, messages)
	for i := range sizes {
		sizes[i] = lengths.IntN(room + 1)
	}
	in, out := memory(t, to, slots*room, shared), memory(t, from, room, shared)
	ctx := patience(t)
	for i := range slots {
		ok(t, to.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{in.SGE(i*room, room)}}))
	}
	failed := make(chan error, 1)
	go func() {
		for n, size := range sizes {
			fill(out.Bytes()[:size], n)
			if err := from.Send(ctx, out.SGE(0, size)); err != nil {
				failed <- fmt.Errorf("message %d: %w", n, err)
				return
			}
		}
		failed <- nil
	}()
	for n, size := range sizes {
		got, err := to.Recv(ctx)
		if err != nil {
			t.Errorf("receive %d: %v", n, err)
			return
		}
		if int(got.ByteLen) != size || got.ID != uint64(n%slots) || got.Op != verbs.DidRecv {
			t.Errorf("receive %d: got %+v, expected %d bytes", n, got, size)
			return
		}
		at := int(got.ID) * room
		check(t, in.Bytes()[at:at+size], n)
		ok(t, to.PostRecv(&verbs.RecvWR{ID: got.ID, SGE: []verbs.SGE{in.SGE(at, room)}}))
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

func TestWriteAndRead(t *testing.T) {
	const n = 3<<20 + 17
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
			ctx := patience(t)
			here, there := memory(t, p.dialed, n, shared), memory(t, p.accepted, n, shared)
			if here.Shared() != shared {
				t.Errorf("Shared() = %v, expected %v", here.Shared(), shared)
			}
			fill(here.Bytes(), 5)
			ok(t, p.accepted.PostRecv(&verbs.RecvWR{}))
			ok(t, p.dialed.Write(ctx, there.Remote(0), here.SGE(0, 1000), here.SGE(1000, n-1000)))
			// The peer may look only after a later message.
			ok(t, p.dialed.SendBytes(ctx, nil))
			must(p.accepted.Recv(ctx))(t)
			check(t, there.Bytes(), 5)
			fill(there.Bytes(), 6)
			ok(t, p.dialed.Read(ctx, there.Remote(0), here.SGE(0, 1), here.SGE(1, n-1)))
			check(t, here.Bytes(), 6)
		})
	}
}

// TestInlineAndInvalidate: inline data may be overwritten at once; a Send with Invalidate invalidates the
// rkey of the receiver's window.
func TestInlineAndInvalidate(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	ctx := patience(t)
	in := memory(t, p.accepted, 4096, true)
	region := must(p.accepted.QP.PD().AllocMemory(4096, verbs.LocalWrite|verbs.BindWindows))(t)
	lend := must(p.accepted.QP.PD().AllocWindow(verbs.Window2))(t)
	ok(t, p.accepted.PostSend(&verbs.SendWR{Op: verbs.OpBindWindow,
		Bind: verbs.Bind{Window: lend, MR: region, Length: 64, Access: verbs.RemoteWrite}}))
	ok(t, p.dialed.Write(ctx, lend.Remote(region, 0), memory(t, p.dialed, 64, true).SGE(0, 64)))
	for i := range 4 {
		ok(t, p.accepted.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{in.SGE(i*64, 64)}}))
	}
	buf := make([]byte, 24)
	for i := range 3 {
		fill(buf, i)
		ok(t, p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: buf}))
	}
	clear(buf)
	ok(t, p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSendWithInv, Flags: verbs.Signaled | verbs.Solicited,
		InvalidateSTag: lend.RKey()}))
	for i := range 4 {
		got := must(p.accepted.Recv(ctx))(t)
		if i < 3 {
			check(t, in.Bytes()[i*64:i*64+int(got.ByteLen)], i)
		} else if !got.Invalidated || got.InvalidatedSTag != lend.RKey() {
			t.Errorf("got %+v, expected that 0x%x is invalidated", got, lend.RKey())
		}
	}
	var one [1]verbs.Completion
	must(p.dialed.SendCQ().Wait(ctx, one[:]))(t)
	ok(t, one[0].Err())
	err := p.dialed.Write(ctx, lend.Remote(region, 0), memory(t, p.dialed, 64, true).SGE(0, 64))
	var failed *verbs.CompletionError
	if !errors.As(err, &failed) || failed.Completion.Status != verbs.StatusRemAccessErr {
		t.Errorf("writing invalidated memory: %v, expected a remote access error", err)
	}
	ok(t, lend.Close())
	ok(t, region.Close())
}

// TestWrongAccess: forbidden accesses fail with the right status on both sides.
func TestWrongAccess(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	ctx := patience(t)
	here, there := memory(t, p.dialed, 4096, true), memory(t, p.accepted, 4096, true)
	err := p.dialed.Write(ctx, there.Remote(1), here.SGE(0, 4096))
	var failed *verbs.CompletionError
	if !errors.As(err, &failed) || failed.Completion.Status != verbs.StatusRemAccessErr ||
		failed.Completion.VendorErr == 0 {
		t.Errorf("writing past the end: %v, expected a remote access error with its cause", err)
	}
	for _, conn := range []*verbs.Conn{p.dialed, p.accepted} {
		select {
		case <-conn.Done():
		case <-ctx.Done():
			t.Fatal("the failed connection did not end")
		}
		if !errors.Is(conn.Err(), verbs.ErrDisconnected) {
			t.Errorf("the connection ended by %v, expected ErrDisconnected", conn.Err())
		}
	}
	if err := p.dialed.Send(ctx, here.SGE(0, 1)); !errors.Is(err, verbs.ErrDisconnected) {
		t.Errorf("a send after the end: %v, expected ErrDisconnected", err)
	}
	if _, err := p.accepted.Recv(ctx); !errors.Is(err, verbs.ErrDisconnected) {
		t.Errorf("a receive after the end: %v, expected ErrDisconnected", err)
	}
}

func TestPostRefusals(t *testing.T) {
	p := connect(t, verbs.ConnOptions{QP: verbs.QPOptions{SendWR: 4, RecvWR: 2, SendSGE: 2, RecvSGE: 1}},
		verbs.ConnOptions{})
	m := memory(t, p.dialed, 4096, true)
	three := []verbs.SGE{m.SGE(0, 1), m.SGE(1, 1), m.SGE(2, 1)}
	for _, c := range []struct {
		wr   verbs.SendWR
		want error
	}{
		{verbs.SendWR{Op: abi.WRTSO}, verbs.ErrUnsupported},
		{verbs.SendWR{Op: verbs.OpBindWindow}, verbs.ErrWorkRequest}, // without a window
		{verbs.SendWR{Op: verbs.OpSend, Flags: 1 << 20}, verbs.ErrWorkRequest},
		{verbs.SendWR{Op: verbs.OpSend, SGE: three}, verbs.ErrWorkRequest},
		{verbs.SendWR{Op: verbs.OpSend, Inline: make([]byte, p.dialed.MaxInline()+1)}, verbs.ErrWorkRequest},
		{verbs.SendWR{Op: verbs.OpSend, Inline: []byte{1}, SGE: three[:1]}, verbs.ErrWorkRequest},
		{verbs.SendWR{Op: verbs.OpRead, Inline: []byte{1}}, verbs.ErrWorkRequest},
	} {
		if err := p.dialed.PostSend(&c.wr); !errors.Is(err, c.want) {
			t.Errorf("PostSend(%+v) = %v, expected %v", c.wr, err, c.want)
		}
	}
	// The peer has posted no receive, so sends stay in the queue, which has room for 4.
	wrs := make([]verbs.SendWR, 10)
	for i := range wrs {
		wrs[i] = verbs.SendWR{Op: verbs.OpSend, SGE: three[:1]}
	}
	if n, err := p.dialed.PostSends(wrs); n != 4 || !errors.Is(err, verbs.ErrQueueFull) ||
		!errors.Is(err, syscall.ENOMEM) {
		t.Errorf("PostSends of 10 to a queue of 4: %d, %v", n, err)
	}
	if err := p.dialed.PostRecv(&verbs.RecvWR{SGE: three[:2]}); !errors.Is(err, verbs.ErrWorkRequest) {
		t.Errorf("a receive with 2 elements where 1 is allowed: %v", err)
	}
	for i := range 3 {
		err := p.dialed.PostRecv(&verbs.RecvWR{})
		if full := i == 2; full != errors.Is(err, verbs.ErrQueueFull) {
			t.Errorf("receive %d of 2: %v", i, err)
		}
	}
	if _, err := p.dialed.PD().AllocMemory(4096, verbs.RemoteWrite); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("RemoteWrite without LocalWrite: %v, expected EINVAL", err)
	}
}

// TestMemoryComesBack: allocated memory is reused and does not accumulate.
func TestMemoryComesBack(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	pd := must(must(c.Devices()[0].Open())(t).AllocPD())(t)
	random := rand.New(rand.NewPCG(3, 0))
	var live []*verbs.MR
	for range 300 {
		if len(live) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(live))
			ok(t, live[i].Close())
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		m := must(pd.AllocMemory(1+random.IntN(64<<10), verbs.LocalWrite))(t)
		for _, b := range m.Bytes() {
			if b != 0 {
				t.Fatal("new memory is not zero")
			}
		}
		fill(m.Bytes(), 1)
		live = append(live, m)
	}
	for _, m := range live {
		check(t, m.Bytes(), 1)
		ok(t, m.Close())
		if err := m.Close(); err == nil {
			t.Fatal("memory was closed twice")
		}
	}
	ok(t, pd.Close())
}
