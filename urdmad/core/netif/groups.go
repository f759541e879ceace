package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// This file has multicast groups: which groups the interface receives, and the IGMP or MLD messages that
// report them. On a port of datagrams the kernel reports them, and only bare datagrams can be sent to
// groups.

// groups are the groups of an interface.
type groups struct {
	n        *Interface
	joined   map[netip.Addr]*joined
	list     []netip.Addr // keys of joined, in any order
	sweep    int          // progress of the answer to a general query: list[:sweep] are reported
	due      []netip.Addr // groups queried individually that are still to be reported
	next     clock.Time   // earliest time of the next burst of reports
	timer    *clock.Timer
	sockets  port.Grouper // on a port of datagrams that supports groups, else nil
	byNumber []netip.Addr // group by the port's number less 1
	// solicited is the solicited-node group of our IPv6 address.
	solicited *joined
}

// joined is one joined group.
type joined struct {
	at       int        // index in groups.list
	times    int        // how often it was joined
	reported clock.Time // time of the last report
	due      bool
	number   uint16 // the port's number of the group, on a port of datagrams
}

// Join makes the interface receive packets to a group, until as many calls of Leave. If the port does not
// support groups, only senders on the same interface are heard.
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

// open makes a port of datagrams receive a group's packets.
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

// of returns the group to which a datagram was sent; invalid if it was left in the meantime.
func (r *groups) of(p *port.Packet) netip.Addr {
	if int(p.Group) > len(r.byNumber) {
		return netip.Addr{}
	}
	return r.byNumber[p.Group-1]
}

// TakenGroups returns how many groups the interface has joined, indexed from 0, in no stable order.
func (n *Interface) TakenGroups() int { return len(n.groups.list) }

// TakenGroup returns one of them, and how often it was joined: 0 for the interface's own group.
func (n *Interface) TakenGroup(i int) (group netip.Addr, times int) {
	group = n.groups.list[i]
	return group, n.groups.joined[group].times
}

func (r *groups) add(group netip.Addr) *joined {
	g := &joined{at: len(r.list)}
	if r.sweep == len(r.list) { // no general query is being answered
		r.sweep++
	}
	r.joined[group], r.list = g, append(r.list, group)
	return g
}

// remove moves the last group of the list to the removed group's place. If the moved group was still to be
// reported but its new place is already done, it is queued separately.
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

// hasGroups reports whether the interface can reach a group.
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

// GroupLink returns the link to a group; false if there is none.
func (n *Interface) GroupLink(group netip.Addr) (Link, bool) {
	if n.info.Datagrams && n.info.Siblings && n.IP().Is4() == group.Is4() {
		return n.Link(), true // leads to the members at other workers
	}
	if !n.hasGroups(group) {
		return Link{}, false
	}
	if group.Is6() {
		return Link{MAC: wire.Group6MAC(group.As16())}, true
	}
	return Link{MAC: wire.GroupMAC(group.As4())}, true
}

// news is the kind of message about a group.
type news uint8

const (
	joins   news = iota
	listens      // in answer to a query
	leaves
)

// The message types of IGMP and MLD for these.
var (
	igmpNews = [...]wire.IGMPType{joins: wire.IGMPReport, listens: wire.IGMPReport, leaves: wire.IGMPLeave}
	mldNews  = [...]wire.MLDChange{joins: wire.MLDJoin, listens: wire.MLDListens, leaves: wire.MLDLeave}
)

func (r *groups) send(what news, group netip.Addr) {
	if r.n.info.Datagrams {
		return // the kernel sends reports
	}
	b := r.n.Alloc()
	if len(b) < max(wire.IGMPFrameLen, wire.MLDFrameLen) {
		return // as if lost: queries are repeated
	}
	mac := wire.MAC(r.n.info.MAC)
	if group.Is4() {
		(&wire.IGMP{Type: igmpNews[what], Group: group.As4()}).Put(b, mac, r.n.IP().As4())
		r.n.commit(wire.IGMPFrameLen)
		return
	}
	src := wire.LinkLocal(mac) // routers ignore messages with other sources
	if r.n.IP().IsLinkLocalUnicast() {
		src = r.n.IP().As16()
	}
	(&wire.MLDReport{Change: mldNews[what], Group: group.As16()}).Put(b, mac, src)
	r.n.commit(wire.MLDFrameLen)
}

// joinSolicited joins the solicited-node group of our IPv6 address.
func (r *groups) joinSolicited() {
	if group := r.solicitedNode(); r.n.hasGroups(group) {
		if r.solicited = r.joined[group]; r.solicited == nil { // nil unless a program has joined it
			r.solicited = r.add(group)
		}
	}
}

// leaveSolicited undoes joinSolicited.
func (r *groups) leaveSolicited() {
	g, group := r.solicited, r.solicitedNode()
	if r.solicited = nil; g != nil && g.times == 0 {
		r.remove(group, g)
		r.send(leaves, group)
	}
}

// announce reports that group (RFC 4862 section 5.4.2): some switches forward packets to a group only to
// its members.
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

// takes reports whether we receive packets to an address: our own address, joined groups, and the all-hosts
// group of IGMP queries if any group was joined.
func (n *Interface) takes(dst wire.IPv4) bool {
	a := netip.AddrFrom4(dst)
	return a == n.IP() && !a.IsUnspecified() || n.IP().Is4() && len(n.groups.joined) > 0 &&
		(n.groups.joined[a] != nil || dst == wire.AllHosts)
}

const (
	// reportAgain is how long a reported group is not reported again, whatever the querier: half of the
	// time that a querier waits for reports after a last member query (RFC 2236 section 8.8).
	reportAgain = clock.Second / 2
	// reportBurst bounds the groups reported at once, lookBurst the groups examined for that; the next
	// burst follows after reportPause.
	reportBurst = 32
	lookBurst   = 256
	reportPause = clock.Millisecond
)

// answer answers a query; reports from others do not suppress ours. Reports are sent in bursts, so that a
// query, which anyone on the link may send, costs little at a time, and many queries cost no more than a
// few.
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

// asked makes a group be reported, or all groups if it is unspecified.
func (r *groups) asked(group netip.Addr) {
	switch {
	case !group.IsUnspecified():
		r.lineUp(group)
	case r.sweep == len(r.list): // otherwise all are being reported already
		r.sweep = 0
	}
	r.reportDue()
}

// lineUp queues a group that was queried individually.
func (r *groups) lineUp(group netip.Addr) {
	if g := r.joined[group]; g != nil && !g.due && !r.recent(g) {
		g.due = true
		r.due = append(r.due, group)
	}
}

func (r *groups) recent(g *joined) bool { return r.n.clock.Now < g.reported+reportAgain }

// reportDue sends a burst of reports, first for groups in the queue, then for a general query, unless the
// last burst was just sent.
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

// sweepSome continues the answer to a general query with up to most reports, and returns how many groups it
// has examined.
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
