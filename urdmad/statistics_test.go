package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/urdmad/attach/snapshot"
)

func TestStatisticsLines(t *testing.T) {
	at := time.Unix(1000, 0)
	snap := func(after time.Duration, rx, resent, messages uint64) *snapshot.Statistics {
		return &snapshot.Statistics{Taken: at.Add(after), Loop: &inspect.Loop{Turns: rx * 10},
			Ports:   []inspect.Port{{Name: "a", RxPackets: rx}, {Name: "b"}},
			Traffic: []inspect.Traffic{{Resent: resent}, {}}, Work: inspect.Work{MessagesSent: messages}}
	}
	var b bytes.Buffer
	level := slog.LevelDebug
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: &level}))
	lines := func(last, now *snapshot.Statistics) string {
		b.Reset()
		logDifference(log, last, now)
		return b.String()
	}
	first := snap(0, 100, 5, 7)
	if got := lines(nil, first); got != "" {
		t.Errorf("the first snapshot: %s", got)
	}
	if got := lines(first, snap(time.Second, 100, 5, 7)); got != "" {
		t.Errorf("nothing happened: %s", got)
	}
	got := lines(first, snap(2500*time.Millisecond, 150, 8, 9))
	for _, want := range []string{"port=a seconds=2.5 rx_packets=50 ", " resent=3 ", "turns=500 ", "messages_out=2 "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.Contains(got, "port=b") || strings.Count(got, "\n") != 2 {
		t.Errorf("expected a line for port a and one for the loop: %s", got)
	}
	gone := snap(5*time.Second, 150, 0, 0)
	if got := lines(first, gone); !strings.Contains(got, " resent=0 ") || !strings.Contains(got, "messages_out=0") {
		t.Errorf("a sum that fell: %s", got)
	}
	if got := lines(first, snap(time.Second, 100, 5, 8)); strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, "poll loop") {
		t.Errorf("messages on this host alone: %s", got)
	}
	level = slog.LevelInfo
	if got := lines(first, snap(time.Second, 150, 8, 9)); got != "" {
		t.Errorf("nothing was lost, and level info says %s", got)
	}
	lossy := snap(time.Second, 150, 8, 9)
	lossy.Ports[0].RxDropped = 1
	if got := lines(first, lossy); strings.Count(got, "\n") != 1 || !strings.Contains(got, "rx_dropped=1 ") {
		t.Errorf("a dropped packet at level info: %s", got)
	}
}
