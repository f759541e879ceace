package neighbour

import (
	"container/heap"
	"math"
	"net/netip"

	"urdma/urdmad/core/due"
	"urdma/wire"
)

const (
	never      = math.MaxInt64
	retryAfter = int64(200e6) // ns between requests for one address
	maxTries   = 5
	staleAfter = int64(60e9) // after this time an entry is confirmed in the background
	maxEntries = 4096        // a flood of requests can't grow the table beyond this
	lockTime   = int64(1e9)  // a neighbour's second change within this time is ignored
)

// Waiter is called once: with ok and the address, or with !ok if there was no answer.
type Waiter func(mac wire.MAC, ok bool)

type entry struct {
	ip      netip.Addr
	mac     wire.MAC
	known   bool
	tries   int
	at      int64 // time of the next request, or when a known entry becomes stale
	changed int64 // time of the last change of mac
	index   int   // index in Table.due
	waiting []Waiter
}

// Due and Stands implement due.Entry.
func (e *entry) Due() int64       { return e.at }
func (e *entry) Stands(index int) { e.index = index }

// Table maps the addresses of one link to Ethernet addresses: by ARP if the port has an IPv4 address, by
// neighbour discovery if it has an IPv6 address.
type Table struct {
	// Changed, if set, is called when a neighbour is learned or its Ethernet address has changed.
	Changed func(netip.Addr, wire.MAC)
	// Contested, if set, is called when the host at an Ethernet address uses our IPv4 address, at most
	// every ten seconds.
	Contested func(wire.MAC)

	mac     wire.MAC
	ip      netip.Addr
	entries map[netip.Addr]*entry
	due     due.Heap[*entry] // all entries, by their time
	claim   uniqueness       // duplicate address detection for an IPv6 address
	// defendable is the earliest time at which our IPv4 address may be defended again.
	defendable int64
}

// New returns the empty table of a port; ip is the unspecified address if the port has none.
func New(mac wire.MAC, ip netip.Addr) *Table {
	return &Table{mac: mac, ip: ip, entries: map[netip.Addr]*entry{}, claim: uniqueness{until: never}}
}

// Entry is the state of a neighbour.
type Entry struct {
	IP     netip.Addr
	MAC    wire.MAC // valid if Known
	Known  bool
	Asking bool // a request is unanswered
}

// Len returns the number of neighbours in the table, indexed from 0, in no stable order.
func (n *Table) Len() int { return len(n.due) }

// At returns one of them.
func (n *Table) At(i int) Entry {
	e := n.due[i]
	return Entry{IP: e.ip, MAC: e.mac, Known: e.known, Asking: e.tries > 0}
}

// Resolve calls w with the Ethernet address of ip: at once if it is known, otherwise when ip answers, or
// when five requests within a second are unanswered. now is in nanoseconds.
func (n *Table) Resolve(now int64, ip netip.Addr, w Waiter) []Outgoing {
	e := n.entries[ip]
	if e != nil && e.known {
		w(e.mac, true)
		return nil
	}
	if n.claim.lost || e == nil && n.full() {
		w(wire.MAC{}, false)
		return nil
	}
	if e == nil {
		e = n.add(ip)
	}
	e.waiting = append(e.waiting, w)
	if len(e.waiting) > 1 {
		return nil
	}
	e.tries = 1
	n.set(e, now+retryAfter)
	return []Outgoing{n.request(ip, nil)}
}

// full reports whether the table is full: besides the maxEntries that strangers may create, it has room for
// as many of our own.
func (n *Table) full() bool { return len(n.entries) >= 2*maxEntries }

// meet handles the sender of a request: a neighbour that we know, or one that asks for our address.
func (n *Table) meet(now int64, ip netip.Addr, mac wire.MAC, forUs bool) {
	e := n.entries[ip]
	if e == nil && forUs && len(n.entries) < maxEntries {
		e = n.add(ip)
	}
	if e != nil {
		n.learn(now, e, mac)
	}
}

func (n *Table) learn(now int64, e *entry, mac wire.MAC) {
	moved := !e.known || e.mac != mac
	if moved && e.known && now-e.changed < lockTime {
		return
	}
	e.mac, e.known, e.tries = mac, true, 0
	n.set(e, now+staleAfter)
	if moved {
		e.changed = now
		if n.Changed != nil {
			n.Changed(e.ip, mac)
		}
	}
	waiting := e.waiting
	e.waiting = nil
	for _, w := range waiting {
		w(mac, true)
	}
}

// Confirm verifies whether a neighbour that seems silent is still reachable, now rather than when its entry
// becomes stale. If its address has changed, Changed is called.
func (n *Table) Confirm(now int64, ip netip.Addr) []Outgoing {
	e := n.entries[ip]
	if e == nil {
		if n.claim.lost || n.full() {
			return nil
		}
		e = n.add(ip)
	} else if e.tries > 0 {
		return nil // a request is already in progress
	}
	e.tries = 1
	n.set(e, now+retryAfter)
	return []Outgoing{n.request(ip, nil)} // a broadcast: its address may have changed
}

// Tick repeats requests, gives up on hosts that do not answer, confirms stale entries, and announces an
// address that no other host has.
func (n *Table) Tick(now int64) (out []Outgoing) {
	if n.claim.until <= now {
		out = n.claimed()
	}
	for len(n.due) > 0 && n.due[0].at <= now {
		e := n.due[0]
		if e.tries == maxTries {
			n.giveUp(e)
			continue
		}
		var to *wire.MAC
		if e.known && e.tries == 0 {
			to = &e.mac
		}
		e.tries++
		n.set(e, now+retryAfter)
		out = append(out, n.request(e.ip, to))
	}
	return out
}

func (n *Table) giveUp(e *entry) {
	heap.Remove(&n.due, e.index)
	delete(n.entries, e.ip)
	for _, w := range e.waiting {
		w(wire.MAC{}, false)
	}
}

// Deadline returns when Tick is due.
func (n *Table) Deadline() int64 {
	if len(n.due) == 0 {
		return n.claim.until
	}
	return min(n.due[0].at, n.claim.until)
}

func (n *Table) add(ip netip.Addr) *entry {
	e := &entry{ip: ip, at: never}
	n.entries[ip] = e
	heap.Push(&n.due, e)
	return e
}

// set sets when an entry needs attention next.
func (n *Table) set(e *entry, at int64) {
	e.at = at
	heap.Fix(&n.due, e.index)
}

// request asks for a neighbour: at its Ethernet address, or by broadcast or multicast if to is nil.
func (n *Table) request(ip netip.Addr, to *wire.MAC) Outgoing {
	if ip.Is4() {
		return n.arpRequest(ip.As4(), to)
	}
	return n.solicit(ip.As16(), to)
}

// Announce announces that the port has come up: neighbours that remember an older Ethernet address learn
// the new one. For an IPv6 address it first sends a probe (RFC 4862 section 5.4); Tick announces the
// address if no other host has it.
func (n *Table) Announce(now int64) []Outgoing {
	switch {
	case n.ip.IsUnspecified():
		return nil
	case n.ip.Is4():
		return n.announceARP()
	}
	return n.probe(now)
}
