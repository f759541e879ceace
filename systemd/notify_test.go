package systemd

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager returns a notify socket: the test plays the service manager.
func manager(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return c
}

// next waits for a message; "" if none comes in time.
func next(t *testing.T, c *net.UnixConn, limit time.Duration) string {
	t.Helper()
	b := make([]byte, 4096)
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(b)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestMessages(t *testing.T) {
	c := manager(t)
	for _, x := range []struct {
		name string
		say  func() error
		want string
	}{
		{"ready", func() error { return Ready("urdma0 up") }, "READY=1\nSTATUS=urdma0 up"},
		{"status", func() error { return Status("2 clients") }, "STATUS=2 clients"},
		{"no assignment by a line break", func() error { return Status("a\nREADY=1\r\nb") }, "STATUS=a; READY=1; b"},
		{"failed", func() error { return Failed(errors.New("port urdma0: gone")) }, "STATUS=failed: port urdma0: gone"},
		{"stopping", Stopping, "STOPPING=1\nSTATUS=stopping"},
	} {
		if err := x.say(); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if got := next(t, c, time.Minute); got != x.want {
			t.Errorf("%s: said %q, expected %q", x.name, got, x.want)
		}
	}
}

// TestReloading: the time is on the clock that systemd compares it with.
func TestReloading(t *testing.T) {
	c := manager(t)
	clock := func() int64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Nano() / 1000
	}
	before := clock()
	if err := Reloading(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(next(t, c, time.Minute), "\n")
	if len(lines) != 3 || lines[0] != "RELOADING=1" || lines[2] != "STATUS=reloading" {
		t.Fatalf("said %q", lines)
	}
	text, ok := strings.CutPrefix(lines[1], "MONOTONIC_USEC=")
	at, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || at < before || at > clock() {
		t.Errorf("said %q, expected a time of now, from %d µs on", lines[1], before)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	r := NewReporter(func() string { t.Error("the status was asked for"); return "" })
	for name, say := range map[string]func() error{"ready": r.Ready, "stopping": Stopping, "reloading": Reloading,
		"keep": func() error { return r.Keep(context.Background()) }} {
		if err := say(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStatusIsToldWhenItChanges(t *testing.T) {
	c := manager(t)
	var clients atomic.Int64
	r := NewReporter(func() string { return strconv.FormatInt(clients.Load(), 10) + " clients" })
	if err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	if got, want := next(t, c, time.Minute), "READY=1\nSTATUS=0 clients"; got != want {
		t.Fatalf("said %q, expected %q", got, want)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.keep(ctx, time.Millisecond) }()
	if got := next(t, c, 50*time.Millisecond); got != "" {
		t.Errorf("said %q though nothing changed", got)
	}
	for _, n := range []int64{1, 0} {
		clients.Store(n)
		if got, want := next(t, c, time.Minute), "STATUS="+strconv.FormatInt(n, 10)+" clients"; got != want {
			t.Errorf("said %q, expected %q", got, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatchdogStarves: the watchdog is not fed while one of two loops stands still.
func TestWatchdogStarves(t *testing.T) {
	c := manager(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "")
	var steady, stalls, looks atomic.Uint64 // looks counts readings of the loop that stands still
	var stalled atomic.Bool
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Watchdog(ctx, func() uint64 { return steady.Add(1) }, func() uint64 {
			if stalled.Load() {
				looks.Add(1)
				return stalls.Load()
			}
			return stalls.Add(1)
		})
	}()
	if got := next(t, c, time.Minute); got != "WATCHDOG=1" {
		t.Fatalf("said %q while both loops turn", got)
	}
	stalled.Store(true)
	for looks.Load() < 2 { // and has read it twice since the last feeding
		time.Sleep(time.Millisecond)
	}
	for next(t, c, 50*time.Millisecond) != "" { // only messages that were under way
	}
	if got := next(t, c, 100*time.Millisecond); got != "" {
		t.Errorf("said %q while one loop stands still", got)
	}
	stalled.Store(false)
	if got := next(t, c, time.Minute); got != "WATCHDOG=1" {
		t.Errorf("said %q after the loop went on", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoWatchdog(t *testing.T) {
	for _, x := range []struct{ usec, pid string }{{"", ""}, {"1000", "1"}} {
		t.Setenv("WATCHDOG_USEC", x.usec)
		t.Setenv("WATCHDOG_PID", x.pid)
		if err := Watchdog(context.Background(), func() uint64 { t.Error("a beat was read"); return 0 }); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("WATCHDOG_USEC", "often")
	if err := Watchdog(context.Background()); err == nil {
		t.Error("an interval of \"often\" was taken")
	}
}
