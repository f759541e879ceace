package dpdk

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestLongLogLine: a line longer than any buffer does not end the reading.
func TestLongLogLine(t *testing.T) {
	r, w := io.Pipe()
	l := &ealLog{log: slog.New(slog.DiscardHandler), marked: make(chan int, 16)}
	go l.read(r)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(w, "first\n"+strings.Repeat("x", 200_000)+"\nlast\n"+strings.Repeat(markPrefix+"1\n",
			100)+"end\n")
	}()
	select {
	case <-wrote:
	case <-time.After(time.Minute):
		t.Fatal("the reader has stopped")
	}
	w.Close()
	for range 60000 {
		l.mu.Lock()
		lines := l.lines
		l.mu.Unlock()
		if len(lines) == 4 {
			if lines[0] != "first" || len(lines[1]) > maxLine || lines[2] != "last" || lines[3] != "end" {
				t.Errorf("lines %.100q", lines)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("not all lines came")
}
