package words

import (
	"net/netip"
	"strings"
	"testing"
)

// TestNoRoute: for an address in a loopback port's network, the text does not say that a port is missing.
func TestNoRoute(t *testing.T) {
	ports := []Port{{"urdma0", netip.MustParsePrefix("10.2.0.1/24")}, {"urdma1", netip.MustParsePrefix("198.18.0.1/24")}}
	for to, want := range map[string]string{
		"198.18.0.77": "nobody has 198.18.0.77: its network is that of the loopback port urdma1 198.18.0.1/24",
		"192.0.2.1":   "no route to 192.0.2.1: urdmad has urdma0 10.2.0.1/24, urdma1 198.18.0.1/24; a port in its network",
	} {
		if got := NoRoute(netip.MustParseAddr(to), ports); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, expected %q", to, got, want)
		}
	}
}
