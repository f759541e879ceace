package neighbour

import (
	"net/netip"
	"testing"

	"urdma/wire"
)

var (
	ourMAC   = wire.MAC{2, 0, 0, 0, 0, 1}
	theirMAC = wire.MAC{2, 0, 0, 0, 0, 2}
	ourIP    = wire.IPv4{10, 0, 0, 1}
	theirIP  = wire.IPv4{10, 0, 0, 2}
	second   = int64(1e9)
)

func addr(ip wire.IPv4) netip.Addr { return netip.AddrFrom4(ip) }

func reply(from wire.IPv4, mac wire.MAC) *wire.ARP {
	return &wire.ARP{Op: wire.ARPReply, SenderMAC: mac, SenderIP: from, TargetMAC: ourMAC, TargetIP: ourIP}
}

// answer records the result of a Waiter.
type answer struct {
	calls int
	mac   wire.MAC
	ok    bool
}

func (a *answer) waiter() Waiter {
	return func(mac wire.MAC, ok bool) { a.calls, a.mac, a.ok = a.calls+1, mac, ok }
}

func TestResolveAsksOnceAndLearns(t *testing.T) {
	n := New(ourMAC, addr(ourIP))
	var a, b, c answer
	out := n.Resolve(0, addr(theirIP), a.waiter())
	if len(out) != 1 || out[0].Dst != wire.Broadcast || out[0].ARP.Op != wire.ARPRequest ||
		out[0].ARP.TargetIP != theirIP ||
		out[0].ARP.SenderIP != ourIP || out[0].ARP.SenderMAC != ourMAC {
		t.Fatalf("request %+v", out)
	}
	if out := n.Resolve(0, addr(theirIP), b.waiter()); len(out) != 0 {
		t.Errorf("a second request at once: %+v", out)
	}
	if out := n.ARP(1, reply(theirIP, theirMAC)); len(out) != 0 {
		t.Errorf("an answer to an answer: %+v", out)
	}
	for _, w := range []*answer{&a, &b} {
		if w.calls != 1 || !w.ok || w.mac != theirMAC {
			t.Errorf("%+v", *w)
		}
	}
	if n.Resolve(2, addr(theirIP), c.waiter()); c.calls != 1 || c.mac != theirMAC {
		t.Errorf("a known address: %+v", c)
	}
	if mac, ok := n.Lookup(addr(theirIP)); !ok || mac != theirMAC {
		t.Errorf("Lookup: %v %v", mac, ok)
	}
}

func TestResolveGivesUp(t *testing.T) {
	n := New(ourMAC, addr(ourIP))
	var a answer
	n.Resolve(0, addr(theirIP), a.waiter())
	requests := 1
	now := int64(0)
	for n.Deadline() != never {
		now = n.Deadline()
		requests += len(n.Tick(now))
	}
	if requests != maxTries || a.calls != 1 || a.ok || now != second {
		t.Errorf("%d requests until %d ns, waiter %+v", requests, now, a)
	}
	n.Resolve(now, addr(theirIP), a.waiter())
	if n.ARP(now, reply(theirIP, theirMAC)); a.calls != 2 || !a.ok {
		t.Errorf("an address that comes back: %+v", a)
	}
}

func TestStaleIsConfirmed(t *testing.T) {
	n := New(ourMAC, addr(ourIP))
	n.Resolve(0, addr(theirIP), new(answer).waiter())
	n.ARP(0, reply(theirIP, theirMAC))
	out := n.Tick(staleAfter)
	if len(out) != 1 || out[0].Dst != theirMAC {
		t.Fatalf("confirmation %+v, expected one to the known address", out)
	}
	moved := wire.MAC{2, 0, 0, 0, 0, 9}
	n.ARP(staleAfter+1, reply(theirIP, moved))
	if mac, _ := n.Lookup(addr(theirIP)); mac != moved {
		t.Errorf("a neighbour that moved is still at %v", mac)
	}
	now := n.Deadline()
	for range maxTries + 1 {
		n.Tick(now)
		now += retryAfter
	}
	if _, ok := n.Lookup(addr(theirIP)); ok {
		t.Error("a neighbour that answers no confirmation is still known")
	}
}

func TestAnswersAndLearning(t *testing.T) {
	group := wire.MAC{1, 0, 0x5e, 0, 0, 1}
	cases := []struct {
		name   string
		packet wire.ARP
		answer bool
		learns bool
	}{
		{"request for us", wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: theirIP, TargetIP: ourIP}, true,
			true},
		{"request for another", wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: theirIP,
			TargetIP: wire.IPv4{10, 0, 0, 3}}, false, false},
		{"unasked reply", *reply(theirIP, theirMAC), false, true},
		{"our own", wire.ARP{Op: wire.ARPRequest, SenderMAC: ourMAC, SenderIP: ourIP, TargetIP: ourIP}, false, false},
		{"from a group address", wire.ARP{Op: wire.ARPRequest, SenderMAC: group, SenderIP: theirIP, TargetIP: ourIP}, false,
			false},
		{"probe", wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, TargetIP: ourIP}, true, false},
	}
	for _, c := range cases {
		n := New(ourMAC, addr(ourIP))
		out := n.ARP(0, &c.packet)
		if (len(out) == 1) != c.answer {
			t.Errorf("%s: %d answers", c.name, len(out))
		}
		if c.answer {
			r := out[0]
			if r.Dst != theirMAC || r.ARP.Op != wire.ARPReply || r.ARP.SenderMAC != ourMAC || r.ARP.SenderIP != ourIP ||
				r.ARP.TargetMAC != theirMAC || r.ARP.TargetIP != c.packet.SenderIP {
				t.Errorf("%s: answer %+v", c.name, r)
			}
		}
		if _, ok := n.Lookup(addr(c.packet.SenderIP)); ok != c.learns {
			t.Errorf("%s: known afterwards: %v", c.name, ok)
		}
	}
}

// TestFloodIsBounded: strangers cannot make the table grow without limit, and there is still room for our own
// questions.
func TestFloodIsBounded(t *testing.T) {
	n := New(ourMAC, addr(ourIP))
	for i := range 3 * maxEntries {
		ip := wire.IPv4{10, byte(i >> 16), byte(i >> 8), byte(i)}
		n.ARP(0, &wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: ip, TargetIP: ourIP})
	}
	if len(n.entries) > maxEntries {
		t.Errorf("%d entries", len(n.entries))
	}
	var a answer
	ip := wire.IPv4{192, 0, 2, 1}
	n.Resolve(0, addr(ip), a.waiter())
	if n.ARP(0, reply(ip, theirMAC)); !a.ok {
		t.Error("no room for a neighbour we asked for")
	}
}

func TestAnnounce(t *testing.T) {
	out := New(ourMAC, addr(ourIP)).Announce(0)
	if len(out) != 2 || out[0].ARP.SenderIP != (wire.IPv4{}) || out[1].ARP.SenderIP != ourIP {
		t.Fatalf("%+v; expected a probe and an announcement", out)
	}
	for _, o := range out {
		if o.Dst != wire.Broadcast || o.ARP.Op != wire.ARPRequest || o.ARP.SenderMAC != ourMAC || o.ARP.TargetIP != ourIP {
			t.Errorf("%+v", o)
		}
	}
}

// TestConflict: a host that uses our address is reported, and the address is defended, at most once in ten
// seconds; our own packets are no conflict.
func TestConflict(t *testing.T) {
	var told []wire.MAC
	n := New(ourMAC, addr(ourIP))
	n.Contested = func(by wire.MAC) { told = append(told, by) }
	claims := func(now int64, a wire.ARP, defended bool) {
		t.Helper()
		before := len(told)
		out := n.ARP(now, &a)
		if len(out) == 1 != defended || len(out) > 1 || len(told)-before != len(out) {
			t.Errorf("%d ms, %v: %d packets, told %d times", now/1e6, a.Op, len(out), len(told)-before)
		} else if defended && (out[0].Dst != wire.Broadcast || out[0].ARP.Op != wire.ARPRequest ||
			out[0].ARP.SenderIP != ourIP || out[0].ARP.TargetIP != ourIP) {
			t.Errorf("%+v is no announcement", out[0])
		}
	}
	claims(0, *reply(ourIP, ourMAC), false)
	claims(0, *reply(ourIP, wire.Broadcast), false)
	claims(0, *reply(ourIP, theirMAC), true)
	claims(1e9, wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: ourIP, TargetIP: ourIP}, false)
	claims(11e9, wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: ourIP, TargetIP: theirIP}, true)
	for _, by := range told {
		if by != theirMAC {
			t.Errorf("told of %v", by)
		}
	}
}

// Lookup returns the address if it is known now.
func (n *Table) Lookup(ip netip.Addr) (wire.MAC, bool) {
	if e := n.entries[ip]; e != nil && e.known {
		return e.mac, true
	}
	return wire.MAC{}, false
}
