package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
)

// stop stops urdmad and waits for all threads: a running thread continues for a moment after the signal.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	ok(t, d.Cmd.Process.Signal(syscall.SIGSTOP))
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		running := d.threadsBut(t, "T")
		if running == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d threads of urdmad go on after SIGSTOP", running)
		}
	}
}

// threadsBut returns how many of urdmad's threads are not in this state (proc(5)).
func (d *daemon) threadsBut(t testing.TB, state string) (n int) {
	t.Helper()
	tasks := fmt.Sprintf("/proc/%d/task", d.Cmd.Process.Pid)
	for _, task := range must(os.ReadDir(tasks))(t) {
		stat, _ := os.ReadFile(filepath.Join(tasks, task.Name(), "stat"))
		if _, is, alive := strings.Cut(string(stat), ") "); alive && !strings.HasPrefix(is, state) { // after the name
			n++
		}
	}
	return n
}

// settle waits until urdmad has completed all posted work: its threads sleep at several checks, so not just
// for a lock.
func (d *daemon) settle(t testing.TB) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for times := 0; times < 10; times++ {
		time.Sleep(3 * time.Millisecond)
		if d.threadsBut(t, "S") > 0 {
			times = 0
		}
		if time.Now().After(end) {
			t.Fatal("urdmad goes on and on")
		}
	}
}

// silence stops urdmad while f runs, which must not take long.
func (d *daemon) silence(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	d.stop(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	got := make(chan error, 1)
	go func() { got <- f(ctx) }()
	var err error
	select {
	case err = <-got:
	case <-time.After(time.Minute):
		err = errors.New("it did not end with its context")
	}
	ok(t, d.Cmd.Process.Signal(syscall.SIGCONT))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("with a silent urdmad: %v, expected DeadlineExceeded", err)
	}
}

// TestSilentUrdmad: no call with a context waits for urdmad longer than the context, and the objects it
// requested are gone when urdmad answers again.
func TestSilentUrdmad(t *testing.T) {
	d := startDaemon(t)
	near, far := d.open(), d.open()
	l := must(far.Listen(":0"))(t)
	address := fmt.Sprintf("198.18.0.1:%d", l.Addr().Port())
	d.silence(t, func(ctx context.Context) error {
		c, err := verbs.OpenContext(ctx, d.Socket)
		if err == nil {
			c.Close()
		}
		return err
	})
	x := must(near.Devices()[0].Open())(t)
	pd := must(x.AllocPD())(t)
	for range 3 {
		d.silence(t, func(ctx context.Context) error {
			_, err := near.Dial(ctx, address, &verbs.ConnOptions{PD: pd})
			return err
		})
		p := &pair{d: d, near: near, far: far}
		p.connect(t, verbs.ConnOptions{PD: pd}, verbs.ConnOptions{})
		ok(t, p.dialed.Close())
		ok(t, p.accepted.Close())
	}
	ok(t, pd.Close())
	ok(t, x.Close())
}

// TestSilenceIsTold: a program that waits for a stopped urdmad logs its process id and state, and continues
// when urdmad does.
func TestSilenceIsTold(t *testing.T) {
	d := startDaemon(t)
	said := make(lines, 16)
	// SetDefault also turns package log's output to the handler, and another SetDefault does not turn it back.
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(slog.NewTextHandler(said, nil)))
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(output)
		log.SetFlags(flags)
	}()
	x := must(d.open().Devices()[0].Open())(t)
	for len(said) > 0 { // on a busy machine; it is said once in a session
		<-said
		x = must(d.open().Devices()[0].Open())(t)
	}
	d.stop(t)
	made := make(chan error, 1)
	go func() {
		_, err := x.AllocPD()
		made <- err
	}()
	want := fmt.Sprintf("process=%d user=%d state=\"stopped; SIGCONT lets it go on\"", d.Cmd.Process.Pid, os.Getuid())
	select {
	case line := <-said:
		if !strings.Contains(line, "urdmad has not answered") || !strings.Contains(line, want) {
			t.Errorf("%q, expected %q in it", line, want)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is said of a stopped urdmad")
	}
	ok(t, d.Cmd.Process.Signal(syscall.SIGCONT))
	ok(t, <-made)
}

// lines receives a log, line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestContextAfterDial: after a connection is closed, its queues and channel do not prevent closing the
// device.
func TestContextAfterDial(t *testing.T) {
	d := startDaemon(t)
	p := &pair{d: d, near: d.open(), far: d.open()}
	x := must(p.near.Devices()[0].Open())(t)
	pd := must(x.AllocPD())(t)
	for range 2 {
		p.connect(t, verbs.ConnOptions{PD: pd}, verbs.ConnOptions{})
		if err := x.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("closed under a connection: %v, expected EBUSY", err)
		}
		ok(t, p.dialed.Close())
	}
	ok(t, pd.Close())
	ok(t, x.Close())
}

// TestDroppedAfterDeath: a program that drops all objects after urdmad has died, pinned memory included, does
// not panic.
func TestDroppedAfterDeath(t *testing.T) {
	d := startDaemon(t)
	func() {
		c := must(verbs.Open(d.Socket))(t)
		x := must(c.Devices()[0].Open())(t)
		pd := must(x.AllocPD())(t)
		must(pd.RegisterMemory(make([]byte, 4096), verbs.LocalWrite))(t)
		d.Kill()
		<-c.Gone()
	}()
	for range 10 { // the collector's finalizers panic if a pin leaked
		time.Sleep(20 * time.Millisecond)
		runtime.GC()
	}
}
