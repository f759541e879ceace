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
			x.Beside(func() { <-stuck })
		}
		if n := x.user.blocked.Load(); n > maxBlockedOfUser {
			t.Fatalf("%d calls of one user wait", n)
		}
	}
	if n := s.blocked.Load(); n != maxBlocked {
		t.Errorf("%d calls wait, expected %d", n, maxBlocked)
	}
	if x := accountOf(s, 0, true); x.Within(time.Minute, func() {}) {
		t.Error("a call beyond the limit")
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
	begun := time.Now()
	if !x.Beside(func() { read <- commandLine(fifo) }) || time.Since(begun) > time.Second {
		t.Fatalf("waited %v", time.Since(begun))
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
