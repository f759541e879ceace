package netif

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// group6 is one of many groups.
func group6(i int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 0x15, 12: 1, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)})
}

// reported receives the MLD reports at the far end, and counts them.
func (r *rig) reported(count map[netip.Addr]int) {
	for {
		waiting, _ := r.far.Poll()
		if waiting == 0 {
			return
		}
		for _, p := range r.far.rx.p[:waiting] {
			var f wire.Frame
			if f.Parse(p.Data, len(p.Data)) == nil && f.Proto == wire.ProtoICMPv6 &&
				p.Data[f.PayloadOff] == wire.ICMPv6MLDReport {
				count[netip.AddrFrom16([16]byte(p.Data[f.PayloadOff+12:]))]++
			}
		}
		for r.far.Next() != nil {
		}
	}
}

// TestManyGroups: a query for all groups costs a limited number of steps per turn, for any number of groups and
// queries, and each group is reported once.
func TestManyGroups(t *testing.T) {
	const many = 3000
	r := newRig6(t)
	got := map[netip.Addr]int{}
	for i := range many {
		r.n.Join(group6(i))
		r.pass()
		r.reported(got)
	}
	r.clock.Now += clock.Second
	clear(got)
	for turn := 0; turn < 40*many/reportBurst && len(got) <= many; turn++ { // many, and the solicited-node group
		before := r.n.groups.sweep
		r.n.groups.asked(netip.IPv6Unspecified())
		if looked := r.n.groups.sweep - before; looked > lookBurst || len(r.n.groups.due) > 0 {
			t.Fatalf("%d groups were looked at, %d got in line", looked, len(r.n.groups.due))
		}
		r.pass()
		r.reported(got)
	}
	for i := range many {
		if n := got[group6(i)]; n != 1 {
			t.Fatalf("group %d was reported %d times", i, n)
		}
	}
}

// TestGroupsChangeDuringAnswer: groups that stay joined while a general query is answered are reported,
// whatever other groups are joined and left.
func TestGroupsChangeDuringAnswer(t *testing.T) {
	const many, stay = 1000, 300
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 1))
		r := newRig6(t)
		got := map[netip.Addr]int{}
		for _, i := range draw.Perm(many) {
			r.n.Join(group6(i))
			r.pass()
			r.reported(got)
		}
		r.clock.Now += clock.Second
		clear(got)
		r.n.groups.asked(netip.IPv6Unspecified())
		for range 100 * many / reportBurst {
			i := stay + draw.IntN(many-stay)
			if r.n.groups.joined[group6(i)] != nil && draw.IntN(3) > 0 {
				r.n.Leave(group6(i))
			} else if r.n.Join(group6(i)); draw.IntN(2) == 0 {
				r.n.Leave(group6(i))
			}
			if draw.IntN(4) == 0 {
				r.n.groups.asked(group6(draw.IntN(many)))
			}
			r.pass()
			r.reported(got)
		}
		for i := range stay {
			if got[group6(i)] == 0 {
				t.Fatalf("seed %d: group %d was not reported", seed, i)
			}
		}
		g := &r.n.groups
		for i, group := range g.list {
			if g.joined[group] == nil || g.joined[group].at != i {
				t.Fatalf("seed %d: place %d of %d has %v", seed, i, len(g.list), group)
			}
		}
		if len(g.list) != len(g.joined) || g.sweep != len(g.list) || len(g.due) > 0 {
			t.Errorf("seed %d: %d in the list, %d joined, at %d, %d in line", seed, len(g.list), len(g.joined), g.sweep,
				len(g.due))
		}
	}
}
