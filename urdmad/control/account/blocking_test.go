package account

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestBesideIsBounded: calls that never return take a bounded number of threads,
// of one user and of all.
func TestBesideIsBounded(t *testing.T) {
	s := &Accounts{}
	stuck := make(chan struct{})
	defer close(stuck)
	for uid := range 3 * maxBlocked {
		x := accountOf(s, uid, false)
		for range 2 * maxBlockedOfUser {
			x.Concurrently(func() { <-stuck })
		}
		if n := x.user.blocked.Load(); n > maxBlockedOfUser {
			t.Fatalf("%d calls of one user wait", n)
		}
	}
	if n := s.blocked.Load(); n != maxBlocked {
		t.Errorf("%d calls wait, expected %d", n, maxBlocked)
	}
	if x := accountOf(s, 0, true); x.Within(10*time.Millisecond, func() {}) {
		t.Error("a call beyond the limit")
	}
}

// TestWithinWaitsForItsTurn: as many programs of one user as like start at once; each
// gets its turn when those before have had theirs.
func TestWithinWaitsForItsTurn(t *testing.T) {
	x, first, ran := accountOf(&Accounts{}, 1000, false), make(chan struct{}), make(chan bool)
	for range maxBlockedOfUser {
		x.Concurrently(func() { <-first })
	}
	for range 3 * maxBlockedOfUser {
		go func() { ran <- x.Within(time.Minute, func() {}) }()
	}
	select {
	case <-ran:
		t.Error("ended before there was room")
	case <-time.After(20 * time.Millisecond):
	}
	close(first)
	for range 3 * maxBlockedOfUser {
		if !<-ran {
			t.Error("got no turn")
		}
	}
}

// TestCommandLineBlocks: HELLO does not wait for a command line that can't be
// read; a FIFO without a writer stands for the stalled page.
func TestCommandLineBlocks(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "cmdline")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	x := accountOf(&Accounts{}, 0, true)
	read := make(chan string, 1)
	if !x.Concurrently(func() { read <- commandLine(fifo) }) { // hangs if it waits
		t.Fatal("the command line is not read")
	}
	if got := x.Owner.CommandLine(); got != "" {
		t.Errorf("command line %q", got)
	}
	if err := os.WriteFile(fifo, []byte("a\x00b c\x00"), 0); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "a b c" {
		t.Errorf("command line %q", got)
	}
}

// TestFallbackOutlivesUser: a user's ledger stays as long as a thread waits for
// one of the user's pages.
func TestFallbackOutlivesUser(t *testing.T) {
	s := &Accounts{}
	x, fallback := accountOf(s, 1000, false), &Amounts{Fallbacks: 1}
	if err := x.Take(fallback); err != nil {
		t.Fatal(err)
	}
	x.Leave()
	y := accountOf(s, 1000, false)
	if y.user != x.user {
		t.Error("the user begins anew while a thread waits")
	}
	x.Give(fallback)
	y.Leave()
	if len(s.users) != 0 {
		t.Error("a ledger of nobody is left")
	}
}

// TestCloserOutlivesUser: a user whose descriptors can't be closed has one thread for them, however often it connects.
func TestCloserOutlivesUser(t *testing.T) {
	s := &Accounts{}
	x, stuck := accountOf(s, 1000, false), make(blocks)
	x.Closer().Close(stuck)
	x.Leave()
	y := accountOf(s, 1000, false)
	if y.user != x.user {
		t.Error("the user begins anew while a thread waits")
	}
	close(stuck)
	for !y.Closer().Idle() {
		time.Sleep(time.Millisecond)
	}
	y.Leave()
	if len(s.users) != 0 {
		t.Error("a ledger of nobody is left")
	}
}

// blocks can't be closed before the channel is.
type blocks chan struct{}

func (b blocks) Close() error { <-b; return nil }
