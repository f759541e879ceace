package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcessThatHangsIsKilledWithItsGroup(t *testing.T) {
	p, err := start(Options{Env: os.Environ()}, "sh", "-c", "sleep 100 & echo started; wait")
	if err != nil {
		t.Fatal(err)
	}
	for p.Output() == "" && p.Running() {
		time.Sleep(time.Millisecond)
	}
	if err := p.Wait(10 * time.Millisecond); !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "wait") {
		t.Fatalf("got %v, want %v and where it hung", err, ErrTimeout)
	}
	// The sleeper keeps the pipe open: if it had survived, the wait would have ended by WaitDelay.
	if errors.Is(p.err, exec.ErrWaitDelay) {
		t.Fatal("the group's other process still held the output")
	}
	if p.Running() {
		t.Fatal("still running")
	}
}

func TestExitStatusIsAnError(t *testing.T) {
	for _, c := range []struct {
		script string
		ok     bool
	}{{"exit 0", true}, {"exit 3", false}, {"kill -9 $$", false}} {
		p, err := start(Options{Env: os.Environ()}, "sh", "-c", c.script)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(Patience); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.script, err)
		}
	}
}

// TestProcessOutlivesTheThreadThatStartsIt: a process lives as long as this program, not only as long as the thread that requested it.
func TestProcessOutlivesTheThreadThatStartsIt(t *testing.T) {
	var p *Process
	var err error
	onEndingThread(t, func() { p, err = start(Options{Env: os.Environ()}, "sleep", "100") })
	if err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGTERM) // no effect if the thread's end has killed it
	if err := p.Wait(Patience); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("got %v, want it terminated", err)
	}
}

// onEndingThread calls f on a thread, and returns when that thread has ended.
func onEndingThread(t *testing.T, f func()) {
	t.Helper()
	threads, taken := make(chan int), make(chan struct{})
	defer close(taken)
	var run func()
	run = func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if tid := syscall.Gettid(); tid != os.Getpid() {
			f()
			threads <- tid
			return
		}
		go run() // the program's first thread never ends, so another one must run it
		<-taken
		runtime.UnlockOSThread()
	}
	go run()
	task := fmt.Sprintf("/proc/self/task/%d", <-threads)
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
			return
		}
	}
	t.Fatal(task + " is still there")
}

func TestTranscriptKeepsTheEnd(t *testing.T) {
	var out transcript
	for range 3 {
		_, _ = out.Write([]byte(strings.Repeat("x", maxTranscript/2)))
	}
	_, _ = out.Write([]byte("end"))
	if s := out.String(); len(s) != maxTranscript || !strings.HasSuffix(s, "end") {
		t.Fatalf("%d bytes kept, want %d ending in \"end\"", len(s), maxTranscript)
	}
}
