package neighbour

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"testing"

	"urdma/wire"
)

func stranger(i int) (ip wire.IPv4) {
	binary.BigEndian.PutUint32(ip[:], 10<<24|1<<16|uint32(i))
	return ip
}

// full makes a table with as many entries as strangers can make.
func full(t *testing.T) *Table {
	n := New(ourMAC, addr(ourIP))
	for i := range maxEntries {
		n.ARP(int64(i), &wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: stranger(i), TargetIP: ourIP})
	}
	if len(n.entries) != maxEntries || len(n.due) != maxEntries {
		t.Fatalf("%d entries, %d of them due", len(n.entries), len(n.due))
	}
	return n
}

// TestCostFollowsDepth: in a table full of strangers, an ARP packet, a resolution and a tick move at most as many
// entries as the heap is deep.
func TestCostFollowsDepth(t *testing.T) {
	n := full(t)
	depth := bits.Len(maxEntries)
	for name, do := range map[string]func(){
		"reply of the first": func() { n.ARP(1e6, reply(stranger(0), theirMAC)) },
		"reply of the last":  func() { n.ARP(2e6, reply(stranger(maxEntries-1), theirMAC)) },
		"request not for us": func() {
			n.ARP(3e6, &wire.ARP{Op: wire.ARPRequest, SenderMAC: theirMAC, SenderIP: stranger(5), TargetIP: theirIP})
		},
		"a neighbour we seek": func() { n.Resolve(4e6, addr(theirIP), new(answer).waiter()) },
		"confirmation":        func() { n.Confirm(5e6, addr(stranger(77))) },
		"tick with none due":  func() { n.Tick(6e6) },
		"tick with one due":   func() { n.Tick(n.Deadline()) },
	} {
		before := append([]*entry(nil), n.due...)
		do()
		moved := len(n.due) - len(before)
		for i, e := range before {
			if n.due[i] != e {
				moved++
			}
		}
		if moved > depth+1 {
			t.Errorf("%s moved %d entries, expected at most %d", name, moved, depth+1)
		}
		for i, e := range n.due {
			if e.index != i || i > 0 && n.due[(i-1)/2].at > e.at {
				t.Fatalf("%s: entry %d is out of place", name, i)
			}
		}
	}
}

// TestMovesAreLocked: a claim to an address that has just changed is ignored, and accepted later.
func TestMovesAreLocked(t *testing.T) {
	n := New(ourMAC, addr(ourIP))
	changes := 0
	n.Changed = func(netip.Addr, wire.MAC) { changes++ }
	second := wire.MAC{2, 0, 0, 0, 0, 9}
	for _, c := range []struct {
		at    int64
		mac   wire.MAC
		known wire.MAC
	}{
		{0, theirMAC, theirMAC},
		{lockTime - 1, second, theirMAC},
		{lockTime, second, second},
		{lockTime + 1, theirMAC, second},
		{2*lockTime - 1, theirMAC, second},
		{2 * lockTime, theirMAC, theirMAC},
	} {
		n.ARP(c.at, reply(theirIP, c.mac))
		if mac, _ := n.Lookup(addr(theirIP)); mac != c.known {
			t.Errorf("at %d ns %v claims it, and it is at %v, expected %v", c.at, c.mac, mac, c.known)
		}
	}
	if changes != 3 {
		t.Errorf("%d changes were told, expected 3", changes)
	}
}

// TestOurOwnAreBounded: neither connections to unused addresses nor silent neighbours make the table grow
// beyond twice the limit for strangers.
func TestOurOwnAreBounded(t *testing.T) {
	for name, do := range map[string]func(*Table, wire.IPv4){
		"resolve": func(n *Table, ip wire.IPv4) { n.Resolve(1e6, addr(ip), new(answer).waiter()) },
		"confirm": func(n *Table, ip wire.IPv4) { n.Confirm(1e6, addr(ip)) },
	} {
		n := full(t)
		for i := range 2 * maxEntries {
			do(n, stranger(maxEntries+i))
		}
		if len(n.entries) != 2*maxEntries || len(n.due) != 2*maxEntries {
			t.Errorf("%s: %d entries, expected %d", name, len(n.entries), 2*maxEntries)
		}
	}
}

// TestStrangersAreForgotten: a flood is forgotten when nobody answers confirmations.
func TestStrangersAreForgotten(t *testing.T) {
	n := full(t)
	for ticks := 0; n.Deadline() != never; ticks++ {
		if ticks > 10*maxEntries {
			t.Fatal("never comes to rest")
		}
		n.Tick(n.Deadline())
	}
	if len(n.entries) != 0 {
		t.Errorf("%d entries are left", len(n.entries))
	}
}
