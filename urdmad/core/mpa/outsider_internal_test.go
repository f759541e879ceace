package mpa

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"urdma/urdmad/core/clock"
)

// TestTellOutsider: of peers that ports[].allow excludes, at most one per minute is logged.
func TestTellOutsider(t *testing.T) {
	var out strings.Builder
	c := &clock.Clock{Now: clock.Second}
	s := &Stack{clock: c, log: slog.New(slog.NewTextHandler(&out, nil))}
	for _, at := range []clock.Time{0, 1, 59, 60, 61} {
		c.Now = (1 + at) * clock.Second
		s.logOutsider(netip.MustParseAddr("192.0.2.7"))
	}
	if n := strings.Count(out.String(), "peer=192.0.2.7"); n != 2 {
		t.Errorf("%d lines, expected 2:\n%s", n, out.String())
	}
}
