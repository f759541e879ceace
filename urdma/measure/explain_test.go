package measure

import (
	"testing"

	"urdma/inspect"
)

// TestByTCP: only over TCP does the peer's kernel refuse connections.
func TestByTCP(t *testing.T) {
	udp := inspect.Port{Address: "10.2.0.1/24", Driver: "udp"}
	tcp := inspect.Port{Address: "10.3.0.1/24", Driver: "tcp"}
	for _, c := range []struct {
		peer  string
		ports []inspect.Port
		want  bool
	}{
		{"10.3.0.7", []inspect.Port{udp, tcp}, true},
		{"10.2.0.7", []inspect.Port{udp, tcp}, false},
		{"192.0.2.1", []inspect.Port{tcp}, true}, // through a gateway
		{"192.0.2.1", []inspect.Port{udp, tcp}, false},
		{"host", []inspect.Port{tcp}, true},
		{"host", nil, false},
	} {
		if got := byTCP(&inspect.Snapshot{Ports: c.ports}, c.peer); got != c.want {
			t.Errorf("%s: %v, expected %v", c.peer, got, c.want)
		}
	}
}
