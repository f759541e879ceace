package responder

import (
	"net/netip"
	"slices"
	"testing"

	"urdma/verbs"
	"urdma/verbs/probe"
)

// TestJudge: whom the configuration lets in, link-local addresses with a zone among them.
func TestJudge(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fe80::1")}
	allow := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fe80::/64")}
	r := New(Config{Own: func(a netip.Addr) bool { return slices.Contains(own, a) }}, Policy{Serve: ForPing, Allow: allow})
	for _, c := range []struct {
		peer       string
		ping, perf probe.Status
	}{
		{"10.0.0.1", probe.Granted, probe.Granted}, {"fe80::1%3", probe.Granted, probe.Granted}, {"::1", probe.Granted, probe.Granted},
		{"10.0.0.2", probe.Granted, probe.NotThisKind}, {"fe80::2%3", probe.Granted, probe.NotThisKind},
		{"10.0.1.2", probe.NotForYou, probe.NotThisKind}, {"fe80:0:0:1::2%3", probe.NotForYou, probe.NotThisKind},
	} {
		for kind, want := range map[probe.Kind]probe.Status{probe.Ping: c.ping, probe.Perf: c.perf} {
			_, got := r.judge(&verbs.Request{Remote: netip.AddrPortFrom(netip.MustParseAddr(c.peer), 1), PrivateData: probe.Request{Kind: kind}.Append(nil)})
			if got != want {
				t.Errorf("%s, kind %v: %v, expected %v", c.peer, kind, got, want)
			}
		}
	}
}
