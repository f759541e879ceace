package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// This file has groups: which of them the interface takes, and IGMP or MLD, by which
// the link learns of it. On a port of datagrams the kernel says so; only bare datagrams
// go to groups there.

// groups are those of an interface.
type groups struct {
	n        *Interface
	joined   map[netip.Addr]*joined
	list     []netip.Addr // those of joined, in any order
	sweep    int          // a query for all has been answered for list[:sweep]
	due      []netip.Addr // asked for one by one, to be reported
	next     clock.Time   // when the next burst of reports may go
	timer    *clock.Timer
	sockets  port.Grouper // of a port of datagrams that has groups, else nil
	byNumber []netip.Addr // its number's, less 1
	// solicited is the group at which our own IPv6 address is asked for.
	solicited *joined
}

// joined is one group.
type joined struct {
	at       int        // in groups.list
	times    int        // that it was joined
	reported clock.Time // last
	due      bool
	number   uint16 // of the port's, on one of datagrams
}

// Join has the interface take what is sent to a group, until as many Leaves. Where there
// are no groups only senders on the same interface are heard.
func (n *Interface) Join(group netip.Addr) error {
	if !n.hasGroups(group) {
		return nil
	}
	g := n.groups.joined[group]
	if g == nil {
		number, err := n.groups.open(group)
		if err != nil {
			return err
		}
		g = n.groups.add(group)
		g.number = number
		n.groups.report(group, g, joins)
	}
	g.times++
	return nil
}

// open has a port of datagrams take a group.
func (r *groups) open(group netip.Addr) (number uint16, err error) {
	if !r.n.info.Datagrams {
		return 0, nil
	}
	if number, err = r.sockets.Join(0, group); err != nil {
		return 0, err
	}
	for len(r.byNumber) < int(number) {
		r.byNumber = append(r.byNumber, netip.Addr{})
	}
	r.byNumber[number-1] = group
	return number, nil
}

// close undoes open.
func (r *groups) close(g *joined) {
	if g.number != 0 {
		r.byNumber[g.number-1], r.n.rx.origin = netip.Addr{}, origin{}
		r.sockets.Leave(0, g.number)
	}
}

// of is the group that a datagram was sent to; it was left meanwhile if it is invalid.
func (r *groups) of(p *port.Packet) netip.Addr {
	if int(p.Group) > len(r.byNumber) {
		return netip.Addr{}
	}
	return r.byNumber[p.Group-1]
}

// TakenGroups is how many groups the interface takes, at 0 to TakenGroups-1, in no order that
// lasts.
func (n *Interface) TakenGroups() int { return len(n.groups.list) }

// TakenGroup is one of them, and how many times it was joined: 0 is the interface's own.
func (n *Interface) TakenGroup(i int) (group netip.Addr, times int) {
	group = n.groups.list[i]
	return group, n.groups.joined[group].times
}

func (r *groups) add(group netip.Addr) *joined {
	g := &joined{at: len(r.list)}
	if r.sweep == len(r.list) { // no query for all waits
		r.sweep++
	}
	r.joined[group], r.list = g, append(r.list, group)
	return g
}

// remove has the last of the list take a group's place. If that was still to be
// reported, and what is in this place no longer is, it gets in line by itself.
func (r *groups) remove(group netip.Addr, g *joined) {
	delete(r.joined, group)
	end := len(r.list) - 1
	last := r.list[end]
	r.list = r.list[:end]
	if last != group {
		r.list[g.at], r.joined[last].at = last, g.at
		if g.at < r.sweep && r.sweep <= end {
			r.lineUp(last)
		}
	}
	r.sweep = min(r.sweep, end)
}

// hasGroups reports whether a group can be reached from the interface.
func (n *Interface) hasGroups(group netip.Addr) bool {
	if n.info.Datagrams && (n.groups.sockets == nil || n.seal == nil) {
		return false
	}
	return n.Receives() && group.IsValid() && n.IP().Is4() == group.Is4()
}

// Leave undoes Join.
func (n *Interface) Leave(group netip.Addr) {
	g := n.groups.joined[group]
	if g == nil || g.times == 0 {
		return
	}
	if g.times--; g.times == 0 && g != n.groups.solicited {
		n.groups.remove(group, g)
		n.groups.send(leaves, group)
		n.groups.close(g)
	}
}

// GroupLink is how a group is reached; false if it can't be.
func (n *Interface) GroupLink(group netip.Addr) (Link, bool) {
	if n.info.Datagrams && n.info.Siblings && n.IP().Is4() == group.Is4() {
		return n.Link(), true // to the members at other workers
	}
	if !n.hasGroups(group) {
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
	if r.n.info.Datagrams {
		return // the kernel does
	}
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
	if group := r.solicitedNode(); r.n.hasGroups(group) {
		if r.solicited = r.joined[group]; r.solicited == nil { // else a program has joined it
			r.solicited = r.add(group)
		}
	}
}

// leaveSolicited undoes it.
func (r *groups) leaveSolicited() {
	g, group := r.solicited, r.solicitedNode()
	if r.solicited = nil; g != nil && g.times == 0 {
		r.remove(group, g)
		r.send(leaves, group)
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
	if r.n.IP().Is4() || r.n.IP().IsUnspecified() || r.n.info.Datagrams {
		return netip.Addr{}
	}
	return netip.AddrFrom16(wire.SolicitedNode(r.n.IP().As16()))
}

// takes reports whether packets for an address come to us: its own, groups that
// were joined, and, where any was, all hosts, which IGMP asks.
func (n *Interface) takes(dst wire.IPv4) bool {
	a := netip.AddrFrom4(dst)
	return a == n.IP() && !a.IsUnspecified() || n.IP().Is4() && len(n.groups.joined) > 0 && (n.groups.joined[a] != nil || dst == wire.AllHosts)
}

const (
	// reportAgain is how long a group that was reported is not reported again,
	// whatever the querier: half of what a querier waits for the answer to a group's last
	// query (RFC 2236 section 8.8).
	reportAgain = clock.Second / 2
	// reportBurst groups are reported at once, of lookBurst that are looked at, and the
	// next reportPause later.
	reportBurst = 32
	lookBurst   = 256
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
	switch {
	case !group.IsUnspecified():
		r.lineUp(group)
	case r.sweep == len(r.list): // else all are being reported
		r.sweep = 0
	}
	r.reportDue()
}

// lineUp puts a group that was asked for in line.
func (r *groups) lineUp(group netip.Addr) {
	if g := r.joined[group]; g != nil && !g.due && !r.recent(g) {
		g.due = true
		r.due = append(r.due, group)
	}
}

func (r *groups) recent(g *joined) bool { return r.n.clock.Now < g.reported+reportAgain }

// reportDue reports the first in line, and of all if those were asked for, unless the
// last burst was just now.
func (r *groups) reportDue() {
	now := r.n.clock.Now
	if now < r.next {
		r.n.clock.Set(r.timer, r.next)
		return
	}
	some := min(reportBurst, len(r.due))
	for _, group := range r.due[:some] {
		if g := r.joined[group]; g != nil && g.due {
			r.report(group, g, listens)
		}
	}
	r.due = r.due[some:]
	if looked := r.sweepSome(reportBurst - some); looked+some > 0 {
		r.next = now + reportPause
	}
	if len(r.due) > 0 || r.sweep < len(r.list) {
		r.n.clock.Set(r.timer, r.next)
	}
}

// sweepSome goes on with the answer to a query for all by up to most reports, and returns
// how many groups it has looked at.
func (r *groups) sweepSome(most int) (looked int) {
	for ; looked < lookBurst && most > 0 && r.sweep < len(r.list); looked++ {
		group := r.list[r.sweep]
		r.sweep++
		if g := r.joined[group]; !r.recent(g) {
			r.report(group, g, listens)
			most--
		}
	}
	return looked
}

func (r *groups) report(group netip.Addr, g *joined, what news) {
	g.due, g.reported = false, r.n.clock.Now
	r.send(what, group)
}
