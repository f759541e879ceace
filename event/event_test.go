package event

import (
	"strings"
	"testing"
)

// TestLine: a queue pair has the number that urdma show and the log use.
func TestLine(t *testing.T) {
	e := Event{PID: 7, QPN: 0x7e, Kind: "SEND", What: "x"}
	if got, want := e.String(), "      7 00007e SEND     x"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if e.QPN = 0; !strings.HasPrefix(e.String(), "      7      - SEND") {
		t.Errorf("of no queue pair: %q", e.String())
	}
}
