package neighbour

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"urdma/wire"
)

var (
	our6   = wire.IPv6{0: 0xfd, 3: 9, 15: 1}
	their6 = wire.IPv6{0: 0xfd, 3: 9, 15: 2}
)

func addr6(ip wire.IPv6) netip.Addr { return netip.AddrFrom16(ip) }

func stranger6(i int) (ip wire.IPv6) {
	ip = wire.IPv6{0: 0xfd, 3: 9}
	binary.BigEndian.PutUint32(ip[8:], uint32(i+1))
	return ip
}

// table6 makes a table whose address no other host has.
func table6(t testing.TB) *Table {
	t.Helper()
	n := New(ourMAC, addr6(our6))
	n.Announce(-retransTimer)
	if out := n.Tick(0); len(out) != 1 || n.Duplicate() || n.Deadline() != never {
		t.Fatalf("after the probe: %+v", out)
	}
	return n
}

// say passes a message to the table that arrived in a frame from mac.
func say(n *Table, now int64, mac wire.MAC, src wire.IPv6, p wire.NDP) []Outgoing {
	return n.NDP(now, &wire.Frame{Src: mac, Src6: src}, &p)
}

func answer6(of wire.IPv6, mac wire.MAC) wire.NDP {
	return wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true, Override: true, Target: of, MAC: mac, HasMAC: true}
}

func question6(target wire.IPv6, mac wire.MAC) wire.NDP {
	return wire.NDP{Type: wire.ICMPv6Solicit, Target: target, MAC: mac, HasMAC: true}
}

func TestResolve6(t *testing.T) {
	n := table6(t)
	var a answer
	out := n.Resolve(0, addr6(their6), a.waiter())
	want := Outgoing{Dst: wire.MAC{0x33, 0x33, 0xff, 0, 0, 2}, From: our6, To: wire.SolicitedNode(their6),
		NDP: question6(their6, ourMAC)}
	if len(out) != 1 || out[0] != want {
		t.Fatalf("solicitation %+v, want %+v", out, want)
	}
	if out := say(n, 1, theirMAC, their6, answer6(their6, theirMAC)); len(out) != 0 || a.calls != 1 || a.mac != theirMAC {
		t.Errorf("an answer is answered %+v, told %+v", out, a)
	}
	if out := n.Tick(staleAfter + 1); len(out) != 1 || out[0].Dst != theirMAC || out[0].To != their6 {
		t.Errorf("a stale neighbour is asked %+v", out)
	}
	tries := 1
	for n.Deadline() != never {
		tries += len(n.Tick(n.Deadline()))
	}
	if _, known := n.Lookup(addr6(their6)); tries != maxTries || known {
		t.Errorf("given up after %d solicitations, known %v", tries, known)
	}
}

// TestAdvertisements: which advertisement changes which entry (RFC 4861 section 7.2.5).
func TestAdvertisements(t *testing.T) {
	other := wire.MAC{2, 0, 0, 0, 0, 9}
	for _, c := range []struct {
		name   string
		asked  bool // an entry waits
		known  bool
		p      wire.NDP
		expect wire.MAC // zero: not known
	}{
		{name: "that nobody asked for", p: answer6(their6, theirMAC)},
		{name: "answer", asked: true, p: answer6(their6, theirMAC), expect: theirMAC},
		{name: "answer without an address", asked: true,
			p: wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true, Target: their6}},
		{name: "answer that overrides nothing", asked: true, p: wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true,
			Target: their6, MAC: theirMAC, HasMAC: true}, expect: theirMAC},
		{name: "move", known: true, p: answer6(their6, other), expect: other},
		{name: "another that overrides nothing", known: true, p: wire.NDP{Type: wire.ICMPv6Advertise, Solicited: true,
			Target: their6, MAC: other, HasMAC: true}, expect: theirMAC},
		{name: "of another", known: true, p: answer6(stranger6(1), other), expect: theirMAC},
	} {
		n := table6(t)
		if c.asked || c.known {
			n.Resolve(0, addr6(their6), new(answer).waiter())
		}
		if c.known {
			say(n, 1, theirMAC, their6, answer6(their6, theirMAC))
		}
		say(n, 2+lockTime, theirMAC, their6, c.p)
		if mac, _ := n.Lookup(addr6(their6)); mac != c.expect {
			t.Errorf("%s: at %v, expected %v", c.name, mac, c.expect)
		}
	}
}

// TestSolicitations: which senders are answered, and learned.
func TestSolicitations(t *testing.T) {
	for _, c := range []struct {
		name   string
		mac    wire.MAC
		src    wire.IPv6
		p      wire.NDP
		answer Outgoing // its Dst is zero: none
		learnt bool
	}{
		{"for us", theirMAC, their6, question6(our6, theirMAC),
			Outgoing{Dst: theirMAC, From: our6, To: their6, NDP: answer6(our6, ourMAC)}, true},
		{"for us, without an address", theirMAC, their6, wire.NDP{Type: wire.ICMPv6Solicit, Target: our6},
			Outgoing{Dst: theirMAC, From: our6, To: their6, NDP: answer6(our6, ourMAC)}, false},
		{"for us, from nobody", theirMAC, wire.IPv6{}, wire.NDP{Type: wire.ICMPv6Solicit, Target: our6},
			Outgoing{Dst: wire.MAC{0x33, 0x33, 0, 0, 0, 1}, From: our6, To: wire.AllNodes,
				NDP: wire.NDP{Type: wire.ICMPv6Advertise, Override: true, Target: our6, MAC: ourMAC, HasMAC: true}}, false},
		{"for another", theirMAC, their6, question6(stranger6(4), theirMAC), Outgoing{}, false},
		{"from our own address", theirMAC, our6, question6(our6, theirMAC), Outgoing{}, false},
		{"for us, from nobody with our own Ethernet address", ourMAC, wire.IPv6{},
			wire.NDP{Type: wire.ICMPv6Solicit, Target: our6}, Outgoing{}, false},
		{"from a kernel behind a tap, which has our Ethernet address", ourMAC, their6, question6(our6, ourMAC),
			Outgoing{Dst: ourMAC, From: our6, To: their6, NDP: answer6(our6, ourMAC)}, true},
	} {
		n := table6(t)
		out := say(n, 1, c.mac, c.src, c.p)
		if c.answer == (Outgoing{}) != (len(out) == 0) || len(out) == 1 && out[0] != c.answer {
			t.Errorf("%s: answered\n%+v, want\n%+v", c.name, out, c.answer)
		}
		if _, known := n.Lookup(addr6(c.src)); known != c.learnt {
			t.Errorf("%s: learnt %v", c.name, known)
		}
	}
}

// TestDuplicateAddressDetection: an address is given up if another host has it, or probes for it too, but
// not because of our own packets.
func TestDuplicateAddressDetection(t *testing.T) {
	probe := wire.NDP{Type: wire.ICMPv6Solicit, Target: our6}
	for _, c := range []struct {
		name string
		mac  wire.MAC
		src  wire.IPv6
		p    wire.NDP
		lost bool
	}{
		{"nothing", theirMAC, their6, answer6(their6, theirMAC), false},
		{"somebody has it", theirMAC, our6, answer6(our6, theirMAC), true},
		{"somebody wants it", theirMAC, wire.IPv6{}, probe, true},
		{"somebody asks for us", theirMAC, their6, question6(our6, theirMAC), false},
		{"our own probe comes back", ourMAC, wire.IPv6{}, probe, false},
	} {
		n := New(ourMAC, addr6(our6))
		out := n.Announce(0)
		if len(out) != 1 || out[0] != (Outgoing{Dst: wire.MAC{0x33, 0x33, 0xff, 0, 0, 1}, To: wire.SolicitedNode(our6),
			NDP: probe}) {
			t.Fatalf("probe %+v", out)
		}
		var a answer
		if out := n.Resolve(1, addr6(stranger6(1)), a.waiter()); len(out) != 1 || out[0].NDP.HasMAC {
			t.Errorf("a solicitation from a tentative address: %+v", out)
		}
		for _, o := range say(n, 2, c.mac, c.src, c.p) {
			if o.NDP.Override {
				t.Errorf("%s: a tentative address overrides: %+v", c.name, o)
			}
		}
		out = n.Tick(retransTimer)
		if n.Duplicate() != c.lost || (a.calls == 1 && !a.ok) != c.lost {
			t.Errorf("%s: duplicate %v, who waited was told %+v", c.name, n.Duplicate(), a)
		}
		if told := len(out) > 0 && out[0].To == wire.AllNodes && out[0].NDP.Override; told == c.lost {
			t.Errorf("%s: announced %v", c.name, out)
		}
		if out := say(n, 2*retransTimer, theirMAC, their6, question6(our6, theirMAC)); (len(out) == 0) != c.lost {
			t.Errorf("%s: answers %+v", c.name, out)
		}
	}
}

// TestDuplicateIsSilent: once another host has the address, no more questions are sent.
func TestDuplicateIsSilent(t *testing.T) {
	n := New(ourMAC, addr6(our6))
	n.Announce(0)
	say(n, 1, theirMAC, our6, answer6(our6, theirMAC))
	var a answer
	out := append(n.Resolve(2, addr6(their6), a.waiter()), n.Confirm(2, addr6(their6))...)
	if out = append(out, n.Announce(3)...); len(out) != 0 || a.calls != 1 || a.ok || n.Deadline() != never {
		t.Errorf("sent %+v, told %+v", out, a)
	}
}

// TestLaterClaims: if a host claims our address after the probe, we answer that we have it, and ignore the claim.
func TestLaterClaims(t *testing.T) {
	n := table6(t)
	say(n, 1, theirMAC, our6, answer6(our6, theirMAC))
	if out := say(n, 2, theirMAC, their6, question6(our6, theirMAC)); n.Duplicate() || len(out) != 1 {
		t.Errorf("duplicate %v, answer %+v", n.Duplicate(), out)
	}
}

// TestFlood6: strangers make the table no larger than with ARP, and are forgotten.
func TestFlood6(t *testing.T) {
	n := table6(t)
	for i := range 3 * maxEntries {
		say(n, 0, theirMAC, stranger6(i), question6(our6, theirMAC))
	}
	if len(n.entries) != maxEntries {
		t.Errorf("%d entries", len(n.entries))
	}
	for i := range 3 * maxEntries {
		n.Resolve(0, addr6(stranger6(100000+i)), new(answer).waiter())
	}
	if len(n.entries) != 2*maxEntries {
		t.Errorf("%d entries with our own", len(n.entries))
	}
	for n.Deadline() != never {
		n.Tick(n.Deadline())
	}
	if len(n.entries) != 0 {
		t.Errorf("%d entries are left", len(n.entries))
	}
}

// TestFamilies: a table accepts nothing of the other address family.
func TestFamilies(t *testing.T) {
	if out := say(New(ourMAC, addr(ourIP)), 0, theirMAC, their6, question6(our6, theirMAC)); len(out) != 0 {
		t.Errorf("IPv4: %+v", out)
	}
	if out := table6(t).ARP(0, &wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: theirIP,
		TargetIP: ourIP}); len(out) != 0 {
		t.Errorf("IPv6: %+v", out)
	}
}

// FuzzNDP: for any messages of a stranger, the table stays within its bounds and its heap in order.
func FuzzNDP(f *testing.F) {
	f.Add([]byte{1, 0, 2, 7}, int64(1))
	f.Add([]byte{3, 9, 2, 7, 4, 1, 3, 200}, int64(5e8))
	f.Fuzz(func(t *testing.T, script []byte, step int64) {
		n := New(ourMAC, addr6(our6))
		now := int64(0)
		for i := 0; i+1 < len(script); i += 2 {
			who := stranger6(int(script[i+1]))
			if script[i+1] == 0 {
				who = our6
			}
			switch script[i] % 6 {
			case 0:
				n.Announce(now)
			case 1:
				n.Resolve(now, addr6(who), new(answer).waiter())
			case 2:
				say(n, now, theirMAC, who, answer6(who, wire.MAC{2, 1: script[i]}))
			case 3:
				say(n, now, theirMAC, who, question6(our6, wire.MAC{2, 1: script[i]}))
			case 4:
				say(n, now, theirMAC, wire.IPv6{}, wire.NDP{Type: wire.ICMPv6Solicit, Target: our6})
			case 5:
				n.Tick(now)
			}
			now += step & (1<<32 - 1)
		}
		for i, e := range n.due {
			if e.index != i || i > 0 && n.due[(i-1)/2].at > e.at || n.entries[e.ip] != e {
				t.Fatalf("entry %d is out of place", i)
			}
		}
		if len(n.due) != len(n.entries) || n.Duplicate() && len(n.entries) > 0 {
			t.Fatalf("%d entries, %d due, duplicate %v", len(n.entries), len(n.due), n.Duplicate())
		}
	})
}
