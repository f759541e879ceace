package netif

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/wire"
)

// This file has groups: which of them the interface takes, and IGMP or MLD, by which
// the link learns of it. A port of datagrams has none: its socket is the kernel's.

// groups are those of an interface.
type groups struct {
	n      *Interface
	joined map[netip.Addr]*joined
	due    []netip.Addr // to be reported
	next   clock.Time   // when the next burst of reports may go
	timer  *clock.Timer
	// solicited is the group at which our own IPv6 address is asked for.
	solicited *joined
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
		n.groups.report(group, g, joins)
	}
	g.times++
	return true
}

// hasGroups reports whether a group can be reached from the interface.
func hasGroups(n *Interface, group netip.Addr) bool {
	return n.info.Wire && !n.info.Datagrams && group.IsValid() && n.IP().Is4() == group.Is4()
}

// Leave undoes Join.
func (n *Interface) Leave(group netip.Addr) {
	g := n.groups.joined[group]
	if g == nil || g.times == 0 {
		return
	}
	if g.times--; g.times == 0 && g != n.groups.solicited {
		delete(n.groups.joined, group)
		n.groups.send(leaves, group)
	}
}

// Groups is how many groups are joined.
func (n *Interface) Groups() int {
	some := len(n.groups.joined)
	if n.groups.solicited != nil && n.groups.solicited.times == 0 {
		some--
	}
	return some
}

// GroupLink is how a group is reached; false if it can't be.
func (n *Interface) GroupLink(group netip.Addr) (Link, bool) {
	if !hasGroups(n, group) {
		return Link{}, false
	}
	if group.Is6() {
		return Link{MAC: wire.Group6MAC(group.As16())}, true
	}
	return Link{MAC: wire.GroupMAC(group.As4())}, true
}

// news is what is said of a group.
type news uint8

const (
	joins   news = iota
	listens      // in answer to a query
	leaves
)

// What IGMP and MLD call it.
var (
	igmpNews = [...]wire.IGMPType{joins: wire.IGMPReport, listens: wire.IGMPReport, leaves: wire.IGMPLeave}
	mldNews  = [...]wire.MLDChange{joins: wire.MLDJoin, listens: wire.MLDListens, leaves: wire.MLDLeave}
)

func (r *groups) send(what news, group netip.Addr) {
	b := r.n.Alloc()
	if len(b) < max(wire.IGMPFrameLen, wire.MLDFrameLen) {
		return // as if lost: queries ask again
	}
	mac := wire.MAC(r.n.info.MAC)
	if group.Is4() {
		(&wire.IGMP{Type: igmpNews[what], Group: group.As4()}).Put(b, mac, r.n.IP().As4())
		r.n.commit(wire.IGMPFrameLen)
		return
	}
	src := wire.LinkLocal(mac) // routers listen to no other
	if r.n.IP().IsLinkLocalUnicast() {
		src = r.n.IP().As16()
	}
	(&wire.MLDReport{Change: mldNews[what], Group: group.As16()}).Put(b, mac, src)
	r.n.commit(wire.MLDFrameLen)
}

// joinSolicited joins the group at which our own IPv6 address is asked for.
func (r *groups) joinSolicited() {
	if group := r.solicitedNode(); hasGroups(r.n, group) {
		r.solicited = &joined{}
		r.joined[group] = r.solicited
	}
}

// announce says so (RFC 4862 section 5.4.2): there are switches that pass on only to
// members what is sent to a group.
func (r *groups) announce() {
	if r.solicited != nil {
		r.report(r.solicitedNode(), r.solicited, joins)
	}
}

func (r *groups) solicitedNode() netip.Addr {
	if r.n.IP().Is4() {
		return netip.Addr{}
	}
	return netip.AddrFrom16(wire.SolicitedNode(r.n.IP().As16()))
}

// takes reports whether packets for an address come to us: its own, groups that
// were joined, and, where any was, all hosts, which IGMP asks.
func (n *Interface) takes(dst wire.IPv4) bool {
	a := netip.AddrFrom4(dst)
	return a == n.IP() || n.IP().Is4() && len(n.groups.joined) > 0 && (n.groups.joined[a] != nil || dst == wire.IPv4{224, 0, 0, 1})
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
	r.asked(netip.AddrFrom4(g.Group))
}

// query6 is answer for MLD.
func (r *groups) query6(f *wire.Frame, message []byte) {
	var q wire.MLDQuery
	if err := q.Parse(f, message); err != nil {
		r.n.Drop(Drop(err.Error()))
		return
	}
	r.asked(netip.AddrFrom16(q.Group))
}

// asked reports a group, or if it is unspecified all.
func (r *groups) asked(group netip.Addr) {
	if !group.IsUnspecified() {
		r.lineUp(group)
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
			r.report(group, g, listens)
		}
	}
	if r.due = r.due[some:]; some > 0 {
		r.next = now + reportPause
	}
	if len(r.due) > 0 {
		r.n.clock.Set(r.timer, r.next)
	}
}

func (r *groups) report(group netip.Addr, g *joined, what news) {
	g.due, g.reported = false, r.n.clock.Now
	r.send(what, group)
}
