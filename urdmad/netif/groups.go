package netif

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/wire"
)

// This file has IPv4 groups: which of them the interface takes, and IGMP, by which
// the link learns of it. A port of datagrams has none: its socket is the kernel's.

// groups are those of an interface.
type groups struct {
	n      *Interface
	joined map[netip.Addr]*joined
	due    []netip.Addr // to be reported
	next   clock.Time   // when the next burst of reports may go
	timer  *clock.Timer
}

// joined is one group.
type joined struct {
	times    int        // that it was joined
	reported clock.Time // last
	due      bool
}

// Join has the interface take what is sent to a group, until as many Leaves; false
// where it can't, and then only senders on the same interface are heard.
func (n *Interface) Join(group netip.Addr) bool {
	if !hasGroups(n, group) {
		return false
	}
	g := n.groups.joined[group]
	if g == nil {
		g = &joined{}
		n.groups.joined[group] = g
		n.groups.report(group, g)
	}
	g.times++
	return true
}

// hasGroups reports whether a group can be reached from the interface.
func hasGroups(n *Interface, group netip.Addr) bool {
	return n.info.Wire && !n.info.Datagrams && n.IP().Is4() && group.Is4()
}

// Leave undoes Join.
func (n *Interface) Leave(group netip.Addr) {
	g := n.groups.joined[group]
	if g == nil {
		return
	}
	if g.times--; g.times == 0 {
		delete(n.groups.joined, group)
		n.groups.send(wire.IGMPLeave, group)
	}
}

// Groups is how many groups are joined.
func (n *Interface) Groups() int { return len(n.groups.joined) }

// GroupLink is how a group is reached; false if it can't be.
func (n *Interface) GroupLink(group netip.Addr) (Link, bool) {
	if !hasGroups(n, group) {
		return Link{}, false
	}
	return Link{MAC: wire.GroupMAC(group.As4())}, true
}

func (r *groups) send(kind wire.IGMPType, group netip.Addr) {
	b := r.n.Alloc()
	if len(b) < wire.IGMPFrameLen {
		return // as if lost: queries ask again
	}
	(&wire.IGMP{Type: kind, Group: group.As4()}).Put(b, wire.MAC(r.n.info.MAC), r.n.IP().As4())
	r.n.commit(wire.IGMPFrameLen)
}

// takes reports whether packets for an address come to us: its own, groups that
// were joined, and, where any was, all hosts, which IGMP asks.
func (n *Interface) takes(dst wire.IPv4) bool {
	a := netip.AddrFrom4(dst)
	return a == n.IP() || len(n.groups.joined) > 0 && (n.groups.joined[a] != nil || dst == wire.IPv4{224, 0, 0, 1})
}

const (
	// reportAgain is how long a group that was reported is not reported again,
	// whoever asks: half of what a querier waits for the answer to a group's last
	// query (RFC 2236 section 8.8).
	reportAgain = clock.Second / 2
	// reportBurst groups are reported at once, and the next reportPause later.
	reportBurst = 32
	reportPause = clock.Millisecond
)

// answer answers a query: reports of others don't silence ours. What is due goes out
// in bursts, so that a query, which anybody on the link may send, costs us little at
// a time, and queries on end no more than a few.
func (r *groups) answer(query []byte) {
	var g wire.IGMP
	if !g.Parse(query) || g.Type != wire.IGMPQuery {
		return
	}
	if g.Group != (wire.IPv4{}) {
		r.lineUp(netip.AddrFrom4(g.Group))
	} else if len(r.due) == 0 {
		for group := range r.joined {
			r.lineUp(group)
		}
	}
	r.reportDue()
}

// lineUp puts a group that was asked for in line.
func (r *groups) lineUp(group netip.Addr) {
	g := r.joined[group]
	if g == nil || g.due || r.n.clock.Now < g.reported+reportAgain {
		return
	}
	g.due = true
	r.due = append(r.due, group)
}

// reportDue reports the first in line, unless the last burst was just now.
func (r *groups) reportDue() {
	now := r.n.clock.Now
	if now < r.next {
		r.n.clock.Set(r.timer, r.next)
		return
	}
	some := min(reportBurst, len(r.due))
	for _, group := range r.due[:some] {
		if g := r.joined[group]; g != nil {
			r.report(group, g)
		}
	}
	if r.due = r.due[some:]; some > 0 {
		r.next = now + reportPause
	}
	if len(r.due) > 0 {
		r.n.clock.Set(r.timer, r.next)
	}
}

func (r *groups) report(group netip.Addr, g *joined) {
	g.due, g.reported = false, r.n.clock.Now
	r.send(wire.IGMPReport, group)
}
