package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"urdma/test/programtest"
	"urdma/verbs"
)

// roles are the functions that the test binary runs as a peer process.
var roles = map[string]func() int{"victim": victim}

// victim connects to the given address, prints that, and sends until it is killed.
func victim() int {
	c, err := verbs.Open("")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	conn, err := c.Dial(context.Background(), os.Getenv("URDMA_VERBS_TEST_ADDRESS"), nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for n := 0; ; n++ {
		if err := conn.SendBytes(context.Background(), []byte{byte(n)}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
}

// TestPeerKilled: kill -9 of the peer's process ends the connection and flushes work, and the next connection
// works. Its Open finds urdmad by itself.
func TestPeerKilled(t *testing.T) {
	d := startDaemon(t)
	c, ctx := d.open(), patience(t)
	l := must(c.Listen(":0"))(t)
	for range 3 {
		peer := exec.Command(must(os.Executable())(t))
		peer.Env = append(os.Environ(), roleVariable+"=victim", "URDMA_SOCKET=", "XDG_RUNTIME_DIR="+d.Dir,
			fmt.Sprintf("URDMA_VERBS_TEST_ADDRESS=127.0.0.1:%d", l.Addr().Port()))
		peer.Stdout = os.Stderr
		ok(t, peer.Start())
		conn := must(l.Accept(ctx, nil))(t)
		m := memory(t, conn, 4096, true)
		for range 50 {
			ok(t, conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{m.SGE(0, 4096)}}))
		}
		for range 20 {
			must(conn.Recv(ctx))(t)
		}
		ok(t, peer.Process.Kill())
		_ = peer.Wait() // reports the signal
		ends := 0
		for {
			_, err := conn.Recv(ctx)
			if err == nil {
				continue // sent before the end
			}
			if !errors.Is(err, verbs.ErrDisconnected) {
				t.Fatalf("after the peer's death: %v", err)
			}
			if ends++; ends == 1 {
				<-conn.Done()
			}
			if conn.Err() != nil && err.Error() == conn.Err().Error() {
				break // all posted work was flushed
			}
		}
		ok(t, conn.Close())
	}
}

// TestDaemonKilled: after kill -9 of urdmad every waiting goroutine gets an error, posted work is flushed,
// and Close still works.
func TestDaemonKilled(t *testing.T) {
	before := runtime.NumGoroutine()
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	ctx := patience(t)
	l := must(p.far.Listen(":0"))(t)
	silent := must(p.far.Listen(":0"))(t)
	x := must(p.near.Devices()[0].Open())(t)
	ch := must(x.CreateCompChannel())(t)
	lonely := must(x.CreateCQ(4, ch))(t)
	m := memory(t, p.accepted, 4096, true)
	for i := range 3 {
		ok(t, p.accepted.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{m.SGE(0, 64)}}))
	}
	waits := map[string]func() error{
		"Recv without receives": func() error { _, err := p.dialed.Recv(ctx); return err },
		// the peer has posted no receive
		"Send":    func() error { return sendTillError(ctx, p.accepted) },
		"Next":    func() error { _, err := l.Next(ctx); return err },
		"CQ.Wait": func() error { _, err := lonely.Wait(ctx, make([]verbs.Completion, 1)); return err },
		"Poll":    func() error { return pollTillError(lonely) },
	}
	var all sync.WaitGroup
	for name, wait := range waits {
		all.Go(func() {
			if err := wait(); !errors.Is(err, verbs.ErrGone) && !errors.Is(err, verbs.ErrDisconnected) {
				t.Errorf("%s: %v, expected ErrGone", name, err)
			}
		})
	}
	all.Go(func() {
		_, err := p.near.Dial(ctx, fmt.Sprintf("198.18.0.1:%d", silent.Addr().Port()), nil)
		if !errors.Is(err, verbs.ErrGone) {
			t.Errorf("Dial: %v, expected ErrGone", err)
		}
	})
	time.Sleep(100 * time.Millisecond)
	start := time.Now()
	p.d.Kill()
	all.Wait()
	t.Logf("MEASURED everything that waited knew %v after the kill", time.Since(start))
	for ev := range x.Events() {
		if ev.Type != verbs.EventDeviceFatal {
			t.Errorf("event %+v, expected EventDeviceFatal alone", ev)
		}
	}
	flushed := 0
	for {
		_, err := p.accepted.Recv(ctx)
		var failed *verbs.CompletionError
		if !errors.As(err, &failed) {
			if !errors.Is(err, verbs.ErrGone) {
				t.Errorf("at last: %v, expected ErrGone", err)
			}
			break
		}
		flushed++
	}
	if flushed != 3 {
		t.Errorf("%d receives were flushed, expected the 3 that were posted", flushed)
	}
	for name, err := range map[string]error{
		"PostSend": p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend}), "PostRecv": p.dialed.PostRecv(&verbs.RecvWR{}),
		"Disconnect": p.dialed.Disconnect(), "Conn.Err": p.dialed.Err(),
	} {
		if !errors.Is(err, verbs.ErrGone) {
			t.Errorf("%s: %v, expected ErrGone", name, err)
		}
	}
	ok(t, p.dialed.Close())
	ok(t, p.accepted.Close())
	ok(t, p.near.Close())
	ok(t, p.far.Close())
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

func sendTillError(ctx context.Context, conn *verbs.Conn) error {
	for {
		if err := conn.SendBytes(ctx, []byte("x")); err != nil {
			return err
		}
	}
}

func pollTillError(q *verbs.CQ) error {
	var out [1]verbs.Completion
	for {
		if _, err := q.Poll(out[:]); err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// TestClientClosed: Close returns ErrClosed to goroutines that post, poll and wait, and leaves no descriptor
// open.
func TestClientClosed(t *testing.T) {
	d := startDaemon(t)
	far := d.open()
	var descriptors int
	for round := range 5 {
		near := must(verbs.Open(d.Socket))(t)
		p := &pair{d: d, near: near, far: far}
		p.connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
		ctx := patience(t)
		var all sync.WaitGroup
		all.Go(func() { closed(t, "Recv", func() error { _, err := p.dialed.Recv(ctx); return err }) })
		all.Go(func() { closed(t, "Poll", func() error { return pollTillError(p.dialed.RecvCQ()) }) })
		all.Go(func() {
			closed(t, "PostSend", func() error {
				for {
					err := p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSend})
					if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
						return err
					}
				}
			})
		})
		time.Sleep(20 * time.Millisecond)
		ok(t, near.Close())
		all.Wait()
		<-p.accepted.Done()
		ok(t, p.accepted.Close())
		open := func() int { return len(must(os.ReadDir("/proc/self/fd"))(t)) }
		if round == 0 {
			descriptors = open()
		}
		// a channel's descriptor is closed when its reader returns
		for end := time.Now().Add(time.Minute); open() > descriptors; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("round %d: %d descriptors, %d after the first", round, open(), descriptors)
			}
		}
	}
}

func closed(t *testing.T, what string, fn func() error) {
	if err := fn(); !errors.Is(err, verbs.ErrClosed) && !errors.Is(err, verbs.ErrDisconnected) {
		t.Errorf("%s: %v, expected ErrClosed", what, err)
	}
}

func TestNoDaemon(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("URDMA_SOCKET", filepath.Join(dir, "nobody"))
	if _, err := verbs.Open(""); !errors.Is(err, verbs.ErrNoDaemon) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("Open = %v, expected ErrNoDaemon and the socket tried", err)
	}
}

// TestExample: the two sides of examples/go/ping.
func TestExample(t *testing.T) {
	ping := programtest.Program(t, "urdma/examples/go/ping")
	d := startDaemon(t)
	run := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(patience(t), ping, args...)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+d.Dir, "URDMA_SOCKET=")
		return c
	}
	const address = "198.18.0.1:7474"
	server := run("-listen", address, "-once")
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	ok(t, server.Start())
	var out []byte
	var err error
	for range 1000 { // until the server listens
		if out, err = run("-n", "200", address).CombinedOutput(); err == nil || !strings.Contains(string(out), "rejected") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || !strings.Contains(string(out), "OK:") {
		t.Errorf("client: %v\n%s", err, out)
	}
	if err := server.Wait(); err != nil || !strings.Contains(said.String(), "OK:") {
		t.Errorf("server: %v\n%s", err, said.String())
	}
	t.Logf("MEASURED %s", out)
}
