package responder

import (
	"net/netip"
	"slices"
	"testing"

	"urdma/verbs"
	"urdma/verbs/probe"
)

// TestJudge: which addresses the configuration accepts, including link-local addresses with a zone.
func TestJudge(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1")}
	allow := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fe80::/64")}
	r := New(Config{Own: func(a netip.Addr) bool { return slices.Contains(own, a) }}, Policy{Serve: true, Allow: allow})
	for _, c := range []struct {
		peer string
		want probe.Status
	}{
		{"10.0.0.1", probe.Granted}, {"fe80::1%3", probe.Granted}, {"::1", probe.Granted},
		{"10.0.0.2", probe.Granted}, {"fe80::2%3", probe.Granted},
		{"10.0.1.2", probe.NotForYou}, {"fe80:0:0:1::2%3", probe.NotForYou},
	} {
		_, got := r.judge(&verbs.Request{Remote: netip.AddrPortFrom(netip.MustParseAddr(c.peer), 1),
			PrivateData: probe.Request{}.Append(nil)})
		if got != c.want {
			t.Errorf("%s: %v, expected %v", c.peer, got, c.want)
		}
	}
}
