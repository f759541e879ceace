package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
)

func TestPrivateData(t *testing.T) {
	longest := bytes.Repeat([]byte("urdma"), verbs.MaxPrivateData/5)
	p := connect(t, verbs.ConnOptions{PrivateData: []byte("from the dialer")}, verbs.ConnOptions{PrivateData: longest})
	if got := p.accepted.PrivateData(); string(got) != "from the dialer" {
		t.Errorf("the listener got %q", got)
	}
	if got := p.dialed.PrivateData(); !bytes.Equal(got, longest) {
		t.Errorf("the dialer got %d bytes, expected %d", len(got), len(longest))
	}
	if p.dialed.RemoteAddr() != p.accepted.LocalAddr() || p.dialed.LocalAddr() != p.accepted.RemoteAddr() {
		t.Errorf("addresses differ: %v-%v and %v-%v", p.dialed.LocalAddr(), p.dialed.RemoteAddr(), p.accepted.LocalAddr(),
			p.accepted.RemoteAddr())
	}
	_, err := p.near.Dial(patience(t), "198.18.0.1:1",
		&verbs.ConnOptions{PrivateData: make([]byte, verbs.MaxPrivateData+1)})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("too much private data: %v, expected EINVAL", err)
	}
}

func TestReject(t *testing.T) {
	d := startDaemon(t)
	near, far, ctx := d.open(), d.open(), patience(t)
	l := must(far.Listen("198.18.0.1:0"))(t)
	go func() {
		if r, err := l.Next(ctx); err == nil {
			_ = r.Reject([]byte("not today")) // the dialer checks the result
		}
	}()
	_, err := near.Dial(ctx, l.Addr().String(), nil)
	var rejected *verbs.RejectedError
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "not today" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial = %v, expected a rejection with private data", err)
	}
	_, err = near.Dial(ctx, "198.18.0.1:9", nil)
	if !errors.As(err, &rejected) || len(rejected.PrivateData) != 0 {
		t.Errorf("Dial where nobody listens = %v, expected a rejection", err)
	}
	// Closing a listener rejects waiting requests.
	failed := make(chan error, 1)
	go func() {
		_, err := near.Dial(ctx, l.Addr().String(), nil)
		failed <- err
	}()
	r := must(l.Next(ctx))(t)
	ok(t, l.Close())
	_ = r.Reject(nil) // ENOENT or nil: closing the listener may have rejected it
	if err := <-failed; !errors.As(err, &rejected) {
		t.Errorf("Dial to a listener that closed = %v, expected a rejection", err)
	}
	if _, err := l.Next(ctx); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("Next of a closed listener: %v", err)
	}
}

// TestDialSource: a connection comes from the address and port number that the dialer requests.
func TestDialSource(t *testing.T) {
	d := startDaemon(t)
	near, far, ctx := d.open(), d.open(), patience(t)
	l := must(far.Listen("198.18.0.1:0"))(t)
	seen := make(chan netip.AddrPort, 1)
	go func() {
		if conn, err := l.Accept(ctx, nil); err == nil { // the dialer checks the result
			seen <- conn.RemoteAddr()
		}
	}()
	source := netip.MustParseAddrPort("198.18.0.1:7488")
	conn := must(near.Dial(ctx, l.Addr().String(), &verbs.ConnOptions{Source: source}))(t)
	if got := <-seen; got != source || conn.LocalAddr() != source {
		t.Errorf("from %v, seen as %v, expected %v", conn.LocalAddr(), got, source)
	}
	for _, wrong := range []string{"198.18.0.1:7488", "192.0.2.1:0"} {
		if _, err := near.Dial(ctx, l.Addr().String(),
			&verbs.ConnOptions{Source: netip.MustParseAddrPort(wrong)}); err == nil {
			t.Errorf("dialed from %s", wrong)
		}
	}
}

// TestListenBacklog: a listener queues as many requests as its backlog.
func TestListenBacklog(t *testing.T) {
	d := startDaemon(t)
	near, far, ctx := d.open(), d.open(), patience(t)
	l := must(far.ListenBacklog("198.18.0.1:0", 2))(t)
	ends := make(chan error, 3)
	for range 3 {
		go func() { _, err := near.Dial(ctx, l.Addr().String(), nil); ends <- err }()
	}
	if err := <-ends; !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("the third request: %v, expected ETIMEDOUT", err)
	}
	for range 2 {
		_ = must(l.Accept(ctx, nil))(t)
		ok(t, <-ends)
	}
	for _, wrong := range []int{0, -1, 1 << 16} {
		if _, err := far.ListenBacklog(":0", wrong); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a backlog of %d: %v, expected EINVAL", wrong, err)
		}
	}
}

func TestCancel(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	l := must(p.far.Listen(":0"))(t)
	address := fmt.Sprintf("198.18.0.1:%d", l.Addr().Port())
	x := must(p.near.Devices()[0].Open())(t)
	ch := must(x.CreateCompChannel())(t)
	for name, wait := range map[string]func(context.Context) error{
		"Recv": func(ctx context.Context) error { _, err := p.accepted.Recv(ctx); return err },
		"CQ.Wait": func(ctx context.Context) error {
			_, err := p.dialed.SendCQ().Wait(ctx, make([]verbs.Completion, 1))
			return err
		},
		"CompChannel.Wait": func(ctx context.Context) error { _, err := ch.Wait(ctx); return err },
		// The peer has posted no receive.
		"Send": func(ctx context.Context) error { return p.dialed.SendBytes(ctx, []byte("hello")) },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		start := time.Now()
		if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, expected the end of its context", name, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s took %v to notice", name, took)
		}
		cancel()
	}
	dialing, cancel := context.WithCancel(patience(t))
	failed := make(chan error, 1)
	go func() {
		_, err := p.near.Dial(dialing, address, nil)
		failed <- err
	}()
	r := must(l.Next(patience(t)))(t)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Dial: %v, expected the end of its context", err)
	}
	if _, err := r.Accept(patience(t), nil); err == nil {
		t.Error("a request that was withdrawn could be accepted")
	}
	// The connection of the cancelled Send still works: its message arrives.
	m := memory(t, p.accepted, 64, true)
	ok(t, p.accepted.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{m.SGE(0, 64)}}))
	if got, err := p.accepted.Recv(patience(t)); err != nil || string(m.Bytes()[:got.ByteLen]) != "hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestChannel: one channel serves several queues.
func TestChannel(t *testing.T) {
	d := startDaemon(t)
	near, far, ctx := d.open(), d.open(), patience(t)
	x := must(near.Devices()[0].Open())(t)
	pd, ch := must(x.AllocPD())(t), must(x.CreateCompChannel())(t)
	send, recv := must(x.CreateCQ(16, ch))(t), must(x.CreateCQ(16, ch))(t)
	p := &pair{d: d, near: near, far: far}
	p.connect(t, verbs.ConnOptions{PD: pd, SendCQ: send, RecvCQ: recv}, verbs.ConnOptions{})
	if err := p.dialed.SendBytes(ctx, nil); !errors.Is(err, verbs.ErrSharedQueue) {
		t.Errorf("Send with the caller's queue: %v", err)
	}
	in := must(pd.AllocMemory(64, verbs.LocalWrite))(t)
	there := memory(t, p.accepted, 64, true)
	ok(t, p.dialed.PostRecv(&verbs.RecvWR{ID: 7, SGE: []verbs.SGE{in.SGE(0, 64)}}))
	ok(t, p.accepted.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{there.SGE(0, 64)}}))
	ok(t, send.Arm(false))
	ok(t, recv.Arm(false))
	ok(t, p.accepted.SendBytes(ctx, []byte("in")))
	ok(t, p.dialed.PostSend(&verbs.SendWR{ID: 8, Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte("out")}))
	seen := map[uint64]bool{}
	for len(seen) < 2 {
		q := must(ch.Wait(ctx))(t)
		var out [4]verbs.Completion
		for _, c := range out[:must(q.Poll(out[:]))(t)] {
			ok(t, c.Err())
			if (q == recv) != (c.ID == 7) {
				t.Errorf("%+v came from the other queue", c)
			}
			seen[c.ID] = true
		}
	}
	if err := ch.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing a channel in use: %v, expected EBUSY", err)
	}
	if err := pd.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing a domain in use: %v, expected EBUSY", err)
	}
	attr := must(p.dialed.Query())(t)
	if attr.QPState != 3 || attr.MaxRdAtomic == 0 {
		t.Errorf("Query: %+v, expected a connected queue pair with reads", attr)
	}
	ok(t, p.dialed.Close())
	ok(t, send.Close())
	ok(t, recv.Close())
	ok(t, ch.Close())
	ok(t, in.Close())
	ok(t, pd.Close())
	ok(t, x.Close())
	if _, open := <-x.Events(); open {
		t.Error("a closed context has an event")
	}
}

// TestDisconnect: Close lets posted work be sent first; the peer sees the end.
func TestDisconnect(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	ctx := patience(t)
	m := memory(t, p.accepted, 4096, true)
	for i := range 20 {
		ok(t, p.accepted.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{m.SGE(i*64, 64)}}))
	}
	for range 10 {
		ok(t, p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend, Inline: []byte("last words")}))
	}
	ok(t, p.dialed.Close())
	ok(t, p.dialed.Close()) // a second Close is no error
	for i := range 10 {
		got := must(p.accepted.Recv(ctx))(t)
		if got.ID != uint64(i) || got.ByteLen != 10 {
			t.Fatalf("message %d: %+v", i, got)
		}
	}
	for i := 10; i < 20; i++ {
		if got, err := p.accepted.Recv(ctx); !errors.Is(err, verbs.ErrDisconnected) || got.ID != uint64(i) ||
			got.Status != verbs.StatusWRFlushErr {
			t.Fatalf("receive %d after the end: %+v, %v", i, got, err)
		}
	}
	if err := p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend}); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("posting to a closed connection: %v", err)
	}
}

// TestAckTimeout: both sides of a connection may set how long a transmission waits for its acknowledgement,
// within InfiniBand's 5 bits.
func TestAckTimeout(t *testing.T) {
	p := connect(t, verbs.ConnOptions{AckTimeout: 20}, verbs.ConnOptions{AckTimeout: 31})
	ok(t, p.dialed.Close())
	l := must(p.far.Listen(":0"))(t)
	for _, n := range []int{-1, 32, 1 << 20} {
		_, err := p.near.Dial(patience(t), fmt.Sprintf("198.18.0.1:%d", l.Addr().Port()), &verbs.ConnOptions{AckTimeout: n})
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("time-out %d: %v, expected EINVAL", n, err)
		}
	}
}
