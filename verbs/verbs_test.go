package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
)

// party is one program: a client with a device, a protection domain and a queue.
type party struct {
	t   *testing.T
	c   *verbs.Client
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
}

func (d *daemon) party(t *testing.T) *party {
	t.Helper()
	p := &party{t: t}
	var err error
	if p.c, err = verbs.OpenSocket(d.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.c.Close() })
	if p.dev, err = p.c.OpenDevice(0); err != nil {
		t.Fatal(err)
	}
	if p.pd, err = p.dev.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if p.cq, err = p.dev.NewCQ(256); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *party) memory(n int, access verbs.Access) *verbs.MR {
	p.t.Helper()
	m, err := p.pd.AllocMemory(n, access)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (p *party) config() verbs.ConnConfig {
	return verbs.ConnConfig{PD: p.pd, SendCQ: p.cq, RecvCQ: p.cq}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// wait takes n completions.
func (p *party) wait(n int) (out []verbs.Completion) {
	p.t.Helper()
	buf := make([]verbs.Completion, 16)
	for len(out) < n {
		got, err := p.cq.Wait(soon(p.t), buf[:min(len(buf), n-len(out))])
		if err != nil {
			p.t.Fatalf("after %d of %d completions: %v", len(out), n, err)
		}
		out = append(out, buf[:got]...)
	}
	return out
}

// ok takes n completions that must be successes.
func (p *party) ok(n int) []verbs.Completion {
	p.t.Helper()
	out := p.wait(n)
	for i := range out {
		if err := out[i].Err(); err != nil {
			p.t.Fatal(err)
		}
	}
	return out
}

// join connects two parties.
func join(t *testing.T, a, b *party) (ca, cb *verbs.Conn) {
	t.Helper()
	l, err := b.c.Listen(address+":0", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	result := make(chan error, 1)
	go func() {
		req, err := l.Accept(soon(t))
		if err == nil {
			cfg := b.config()
			cfg.PrivateData = append([]byte("re: "), req.PrivateData...)
			cb, err = req.Accept(soon(t), cfg)
		}
		result <- err
	}()
	cfg := a.config()
	cfg.PrivateData = []byte("hello")
	if ca, err = a.c.Dial(soon(t), l.Addr.String(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if string(ca.PrivateData) != "re: hello" || string(cb.PrivateData) != "hello" {
		t.Errorf("private data %q and %q", ca.PrivateData, cb.PrivateData)
	}
	return ca, cb
}

func post(t *testing.T, c *verbs.Conn, r verbs.SendRequest) {
	t.Helper()
	r.Signaled = true
	if _, err := c.PostSend(&r); err != nil {
		t.Fatal(err)
	}
}

func TestMessagesWritesAndReads(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, cb := join(t, a, b)
	const size = 1 << 20
	for _, kind := range []string{"shared", "slice"} {
		t.Run(kind, func(t *testing.T) {
			memory := func(p *party, access verbs.Access) *verbs.MR {
				if kind == "shared" {
					return p.memory(size, access)
				}
				m, err := p.pd.Register(make([]byte, size), access)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			src, dst := memory(a, verbs.LocalWrite), memory(b, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
			for i := range src.Bytes() {
				src.Bytes()[i] = byte(i*7 + i>>8)
			}
			runtime.GC()
			if err := cb.PostRecv(9, dst.Segment(0, size/2), dst.Segment(size/2, size/2)); err != nil {
				t.Fatal(err)
			}
			post(t, ca, verbs.SendRequest{ID: 1, Op: verbs.OpSend, Local: src.Slice(0, size)})
			a.ok(1)
			if got := b.ok(1)[0]; got.ID != 9 || got.Op != verbs.OpRecv || got.Bytes != size || got.QPNum != cb.Num {
				t.Errorf("receive %+v", got)
			}
			if !bytes.Equal(dst.Bytes(), src.Bytes()) {
				t.Error("the message's bytes differ")
			}
			clear(dst.Bytes())
			post(t, ca, verbs.SendRequest{ID: 2, Op: verbs.OpWrite, Local: src.Slice(100, 5000), RemoteAddr: dst.Addr() + 77, RemoteKey: dst.Key()})
			clear(src.Bytes()[20000:30000])
			post(t, ca, verbs.SendRequest{ID: 3, Op: verbs.OpRead, Local: src.Slice(20000, 5000), RemoteAddr: dst.Addr() + 77, RemoteKey: dst.Key()})
			done := a.ok(2)
			if done[0].Op != verbs.OpWrite || done[1].Op != verbs.OpRead {
				t.Errorf("completions %+v", done)
			}
			if !bytes.Equal(src.Bytes()[20000:25000], src.Bytes()[100:5100]) {
				t.Error("what was written and read back differs")
			}
			if err := errors.Join(src.Close(), dst.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInlineAndInvalidate(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, cb := join(t, a, b)
	box := b.memory(4096, verbs.LocalWrite|verbs.RemoteWrite)
	if err := cb.PostRecv(1, box.Segment(0, 100)); err != nil {
		t.Fatal(err)
	}
	data := []byte("inline data may be changed at once")
	post(t, ca, verbs.SendRequest{Op: verbs.OpSendAndInvalidate, Inline: data, Invalidate: box.Key()})
	want := string(data)
	clear(data)
	a.ok(1)
	if got := b.ok(1)[0]; !got.HasInvalidated || got.Invalidated != box.Key() || string(box.Bytes()[:got.Bytes]) != want {
		t.Errorf("%+v %q", got, box.Bytes()[:got.Bytes])
	}
	post(t, ca, verbs.SendRequest{Op: verbs.OpWrite, Inline: []byte("x"), RemoteAddr: box.Addr(), RemoteKey: box.Key()})
	if got := a.wait(1)[0]; got.Status != verbs.RemoteAccess {
		t.Errorf("a write to an invalidated region: %v", got.Err())
	}
	<-ca.Done()
}

func TestRefusals(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ctx := soon(t)

	_, err := a.c.Dial(ctx, address+":9", a.config())
	var rejected *verbs.RejectedError
	if !errors.As(err, &rejected) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := b.c.Listen(address+":0", 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		req, err := l.Accept(ctx)
		if err == nil {
			err = req.Reject([]byte("not today"))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	_, err = a.c.Dial(ctx, l.Addr.String(), a.config())
	if !errors.As(err, &rejected) || string(rejected.PrivateData) != "not today" {
		t.Errorf("rejected: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err = a.c.Dial(short, l.Addr.String(), a.config()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody accepts: %v", err)
	}
	if _, err = b.c.Listen(l.Addr.String(), 1); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listener: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(ctx); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	if _, err := a.pd.AllocMemory(0, 0); !errors.Is(err, verbs.ErrRequest) {
		t.Errorf("no memory: %v", err)
	}
	if _, err := a.pd.Register(make([]byte, 10), verbs.RemoteWrite); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("remote write without local write: %v", err)
	}
	if err := a.dev.Close(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("closing a device in use: %v", err)
	}
	if _, err := verbs.OpenSocket(d.socket + "x"); !errors.Is(err, verbs.ErrNoDaemon) {
		t.Errorf("no daemon: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, _ := join(t, a, b)
	m := a.memory(4096, 0)
	many := make([]verbs.Segment, 33)
	for _, r := range []verbs.SendRequest{{Op: 99}, {Op: verbs.OpSend, Local: many}, {Op: verbs.OpRead, Inline: []byte{1}},
		{Op: verbs.OpSend, Inline: make([]byte, 2000)}, {Op: verbs.OpSend, Inline: []byte{1}, Local: m.Slice(0, 1)}} {
		if n, err := ca.PostSend(&r); n != 0 || !errors.Is(err, verbs.ErrRequest) {
			t.Errorf("%+v: %d, %v", r, n, err)
		}
	}
	if err := ca.PostRecv(1, many...); !errors.Is(err, verbs.ErrRequest) {
		t.Error(err)
	}
	for i := range 64 {
		if err := ca.PostRecv(uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ca.PostRecv(64); !errors.Is(err, verbs.ErrQueueFull) {
		t.Errorf("a full queue: %v", err)
	}
	post(t, ca, verbs.SendRequest{ID: 5, Op: verbs.OpSend, Local: m.Slice(4000, 200)})
	got := a.wait(65)
	if got[0].ID != 5 || got[0].Status != verbs.LocalProtect || !strings.Contains(got[0].Err().Error(), "local protection") {
		t.Errorf("out of bounds: %+v", got[0])
	}
	for i, c := range got[1:] {
		if c.ID != uint64(i) || c.Status != verbs.Flushed {
			t.Errorf("receive %d: %+v", i, c)
		}
	}
}

func TestDisconnectAndEvents(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, cb := join(t, a, b)
	box, src := b.memory(4096, verbs.LocalWrite), a.memory(4096, 0)
	for i := range 8 {
		if err := cb.PostRecv(uint64(i), box.Segment(0, 100)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		post(t, ca, verbs.SendRequest{Op: verbs.OpSend, Local: src.Slice(0, 100)})
	}
	if err := ca.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cb.Done():
	case <-time.After(patience):
		t.Fatal("the peer heard nothing of the end")
	}
	a.ok(5)
	for i, c := range b.wait(8) {
		if i < 5 && c.Status != verbs.Success || i >= 5 && c.Status != verbs.Flushed {
			t.Errorf("receive %d: %v", i, c.Status)
		}
	}
	if _, err := ca.PostSend(&verbs.SendRequest{Op: verbs.OpSend}); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("posting to a closed connection: %v", err)
	}

	cc, cd := join(t, a, b)
	post(t, cc, verbs.SendRequest{Op: verbs.OpWrite, Inline: []byte{1}, RemoteKey: 77})
	ev, err := b.dev.NextEvent(soon(t))
	if err != nil || ev.Type != verbs.EventQPAccess || ev.Handle != cd.Handle() {
		t.Errorf("event %+v, %v", ev, err)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.dev.NextEvent(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no further event: %v", err)
	}
}

// TestDaemonDies: everything that waits returns ErrGone, and nothing hangs.
func TestDaemonDies(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, _ := join(t, a, b)
	l, err := a.c.Listen(address+":0", 1)
	if err != nil {
		t.Fatal(err)
	}
	slice, err := a.pd.Register(make([]byte, 100), verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[string]func() error{
		"Wait":      func() error { _, err := a.cq.Wait(soon(t), make([]verbs.Completion, 1)); return err },
		"NextEvent": func() error { _, err := a.dev.NextEvent(soon(t)); return err },
		"Accept":    func() error { _, err := l.Accept(soon(t)); return err },
		"Done":      func() error { <-ca.Done(); return verbs.ErrGone },
	}
	var all sync.WaitGroup
	for name, fn := range waiting {
		all.Go(func() {
			if err := fn(); !errors.Is(err, verbs.ErrGone) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	d.kill()
	all.Wait()
	if a.c.Alive() {
		t.Error("the client thinks that urdmad lives")
	}
	if _, err := a.pd.AllocMemory(10, 0); !errors.Is(err, verbs.ErrGone) {
		t.Errorf("call: %v", err)
	}
	_ = slice
}

// TestCloseEndsWaits: closing the client ends what waits, and the peer hears.
func TestCloseEndsWaits(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	_, cb := join(t, a, b)
	ended := make(chan error, 1)
	go func() {
		_, err := a.cq.Wait(soon(t), make([]verbs.Completion, 1))
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := a.c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	<-cb.Done()
	if err := a.c.Close(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// TestManyGoroutines has several connections of one client in use at once, each
// with its own queue, and is worth running with -race.
func TestManyGoroutines(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	var all sync.WaitGroup
	for k := range 4 {
		ca, cb := join(t, a, b)
		_, _ = ca, cb
		box, src := b.memory(8192, verbs.LocalWrite|verbs.RemoteWrite), a.memory(8192, 0)
		all.Go(func() {
			for i := range 200 {
				r := verbs.SendRequest{ID: uint64(k), Op: verbs.OpWrite, Signaled: true, Local: src.Slice(0, 8192),
					RemoteAddr: box.Addr(), RemoteKey: box.Key()}
				if _, err := ca.PostSend(&r); errors.Is(err, verbs.ErrQueueFull) {
					time.Sleep(time.Millisecond)
				} else if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var poller sync.WaitGroup
	for range 2 {
		poller.Go(func() {
			buf := make([]verbs.Completion, 8)
			for {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
				n, err := a.cq.Wait(ctx, buf)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
					return
				}
				for i := range buf[:n] {
					if err := buf[i].Err(); err != nil {
						t.Error(err)
					}
				}
				select {
				case <-stop:
					if n == 0 {
						return
					}
				default:
				}
			}
		})
	}
	all.Wait()
	close(stop)
	poller.Wait()
}

// TestMemoryIsGivenBack: rounds of allocation reuse the file's space, zeroed.
func TestMemoryIsGivenBack(t *testing.T) {
	d := startDaemon(t)
	a := d.party(t)
	before := mappings(t)
	for i := range 2000 {
		m := a.memory(1+i%5*4096, verbs.LocalWrite)
		for _, x := range m.Bytes() {
			if x != 0 {
				t.Fatalf("round %d: memory isn't zeroed", i)
			}
		}
		m.Bytes()[0] = 1
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := a.pd.Register(make([]byte, 64), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := mappings(t) - before; n > 0 {
		t.Errorf("%d mappings are left", n)
	}
}

// mappings counts those of memory files in this process.
func mappings(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(maps, []byte("urdma-memory"))
}

// TestFullUntilPolled: a queue is full until its completions are polled, so that
// a completion queue as long as the queue pairs on it never overruns.
func TestFullUntilPolled(t *testing.T) {
	d := startDaemon(t)
	a, b := d.party(t), d.party(t)
	ca, _ := join(t, a, b)
	box := b.memory(64, verbs.LocalWrite|verbs.RemoteWrite)
	r := verbs.SendRequest{Op: verbs.OpWrite, Signaled: true, Inline: []byte("x"), RemoteAddr: box.Addr(), RemoteKey: box.Key()}
	for round := range 3 {
		n := 0
		for ; n < 1000; n++ {
			r.Signaled = n%2 == 1
			if _, err := ca.PostSend(&r); errors.Is(err, verbs.ErrQueueFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if n%8 == 0 {
				time.Sleep(time.Millisecond) // they complete, and still count
			}
		}
		if n != 64 {
			t.Fatalf("round %d: %d requests were taken, expected 64", round, n)
		}
		a.ok(32)
	}
}

// TestPing runs the example: server and client, each a process.
func TestPing(t *testing.T) {
	d := startDaemon(t)
	env := append(os.Environ(), "URDMA_SOCKET="+d.socket)
	for i, args := range [][]string{{"-n", "2000"}, {"-n", "50", "-size", "1048576"}} {
		at := fmt.Sprintf("%s:%d", address, 7474+i)
		server := exec.Command(built(t, "ping"), "-listen", at)
		var said bytes.Buffer
		server.Env, server.Stdout = env, &said
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		var out []byte
		var err error
		for range 50 { // until it listens
			client := exec.Command(built(t, "ping"), append(args, at)...)
			client.Env = env
			if out, err = client.Output(); err == nil || !strings.Contains(string(out), "rejected") {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			_ = server.Process.Kill()
		}
		if e := server.Wait(); e != nil || err != nil {
			t.Errorf("client %v: %v %s; server: %v %s", args, err, out, e, said.String())
		}
		t.Logf("%s%s", out, said.String())
	}
	client := exec.Command(built(t, "ping"), address+":9")
	client.Env = env
	if out, err := client.Output(); err == nil || !strings.Contains(string(out), "FAILED") {
		t.Errorf("nobody listens: %v %s", err, out)
	}
}
