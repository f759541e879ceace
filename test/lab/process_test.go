package lab

import (
	"errors"
	"os"
	"os/exec"
	"strings"
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
	// The sleeper holds the pipe: had it lived, the wait would have ended by WaitDelay.
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
