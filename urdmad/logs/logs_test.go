package logs

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestQueueNeverBlocks: a destination that takes nothing holds nobody up, and
// hears how many lines it missed.
func TestQueueNeverBlocks(t *testing.T) {
	r, w := io.Pipe()
	q := NewWriter(w)
	for i := range 10 * queued { // hangs if one of them waits
		fmt.Fprintf(q, "line %d\n", i)
	}
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		text <- string(all)
	}()
	q.Close()
	w.Close()
	got := <-text
	if !strings.HasPrefix(got, "line 0\n") || !strings.Contains(got, " log lines lost") ||
		strings.Count(got, "\n") > queued+3 {
		t.Errorf("%d lines: %.200s", strings.Count(got, "\n"), got)
	}
}

// TestQueueCloses: also where nobody ever reads.
func TestQueueCloses(t *testing.T) {
	_, w := io.Pipe()
	q := NewWriter(w)
	for range 2 * queued {
		fmt.Fprintln(q, "line")
	}
	closed := make(chan struct{})
	go func() { q.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("Close still waits")
	}
}

func TestLimit(t *testing.T) {
	var out bytes.Buffer
	l := NewLimit(slog.NewTextHandler(&out, nil))
	now := time.Unix(1000, 0)
	l.kinds.now = func() time.Time { return now }
	log := slog.New(l).With("port", "urdma0")
	count := func(n int, message string) int {
		out.Reset()
		for i := range n {
			log.Warn(message, "number", i)
		}
		return strings.Count(out.String(), "\n")
	}
	if n := count(1000, "impossible packet"); n != burst {
		t.Errorf("%d lines of a flood, expected %d", n, burst)
	}
	if n := count(1, "another message"); n != 1 {
		t.Error("a flood of one message holds back another")
	}
	now = now.Add(time.Second)
	if n := count(1000, "impossible packet"); n != int(time.Second/interval) ||
		!strings.Contains(out.String(), "left_out_before=900\n") {
		t.Errorf("%d lines a second later: %.300s", n, out.String())
	}
	now = now.Add(time.Hour)
	if n := count(burst, "impossible packet"); n != burst {
		t.Errorf("%d lines after an hour", n)
	}
}

func TestLimitForgets(t *testing.T) {
	l := NewLimit(slog.DiscardHandler)
	for i := range 10 * maxKinds {
		l.kinds.take(fmt.Sprint(i))
	}
	if n := len(l.kinds.of); n > maxKinds {
		t.Errorf("%d messages are remembered", n)
	}
}

func TestQueuePairNumbersAreHexadecimal(t *testing.T) {
	var out strings.Builder
	l := slog.New(Hex{slog.NewTextHandler(&out, nil)})
	l.With("qpn", uint32(0x871cec)).WithGroup("peer").Info("lost", "qpn", uint32(1), "peer_qpn", uint32(0x7e), "count",
		uint32(16))
	if want := " msg=lost qpn=871cec peer.qpn=000001 peer.peer_qpn=00007e peer.count=16\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
