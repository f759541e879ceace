package measure

import (
	"testing"

	"urdma/inspect"
)

// TestOnLoopback: an address of a loopback port's network is not said to lack a port.
func TestOnLoopback(t *testing.T) {
	snap := &inspect.Snapshot{Ports: []inspect.Port{
		{Name: "urdma0", Driver: "memif", Address: "10.2.0.1/24"},
		{Name: "urdma1", Driver: "loopback", Address: "198.18.0.1/24"},
	}}
	for peer, want := range map[string]string{"198.18.0.77": "urdma1 198.18.0.1/24", "10.2.0.7": "", "192.0.2.1": "", "host": ""} {
		if got := onLoopback(snap, peer); got != want {
			t.Errorf("%s: %q, expected %q", peer, got, want)
		}
	}
	if got := onLoopback(nil, "198.18.0.77"); got != "" {
		t.Errorf("without a snapshot: %q", got)
	}
}
