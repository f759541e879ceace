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
	staleAfter = int64(60e9) // then the entry is confirmed in the background
	maxEntries = 4096        // a flood of requests cannot grow the table past this
	lockTime   = int64(1e9)  // a neighbour that moves again within it is not believed
)

// Waiter is called once: ok with the address, or !ok when nobody answered.
type Waiter func(mac wire.MAC, ok bool)

type entry struct {
	ip      netip.Addr
	mac     wire.MAC
	known   bool
	tries   int
	at      int64 // next request, or when a known entry turns stale
	changed int64 // when it got another mac last
	index   int   // in Table.due
	waiting []Waiter
}

// Due and Stands are due.Entry's.
func (e *entry) Due() int64       { return e.at }
func (e *entry) Stands(index int) { e.index = index }

// Table maps the addresses of one link to Ethernet addresses: those of IPv4 by ARP,
// or those of IPv6 by neighbour discovery, as the port's own address is.
type Table struct {
	// Changed, if set, is called when a neighbour is learnt or has moved to
	// another Ethernet address.
	Changed func(netip.Addr, wire.MAC)
	// Contested, if set, is called when a host at an Ethernet address is seen to use
	// our IPv4 address, at most every ten seconds.
	Contested func(wire.MAC)

	mac     wire.MAC
	ip      netip.Addr
	entries map[netip.Addr]*entry
	due     due.Heap[*entry] // every entry, by its time
	claim   uniqueness       // of an IPv6 address
	// defendable is when our IPv4 address may be defended again.
	defendable int64
}

// New returns the empty table of a port; one without an address has the unspecified one.
func New(mac wire.MAC, ip netip.Addr) *Table {
	return &Table{mac: mac, ip: ip, entries: map[netip.Addr]*entry{}, claim: uniqueness{until: never}}
}

// Entry is what the table knows of a neighbour.
type Entry struct {
	IP     netip.Addr
	MAC    wire.MAC // where Known
	Known  bool
	Asking bool // a request waits for its answer
}

// Len is how many neighbours the table has, at 0 to Len-1, in no order that lasts.
func (n *Table) Len() int { return len(n.due) }

// At describes one of them.
func (n *Table) At(i int) Entry {
	e := n.due[i]
	return Entry{IP: e.ip, MAC: e.mac, Known: e.known, Asking: e.tries > 0}
}

// Resolve calls w with the Ethernet address of ip: at once if it is known, else
// when it answers or has not answered five requests in a second. now is in
// nanoseconds.
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

// full: beside the entries that strangers may make there is room for as many of
// our own.
func (n *Table) full() bool { return len(n.entries) >= 2*maxEntries }

// meet takes who asked for us: a neighbour we know of, or one who wants to talk to
// us.
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

// Confirm asks a neighbour that seems to be silent whether it is still there, at
// once instead of when its entry turns stale. Answers point Changed's callers to
// its new address.
func (n *Table) Confirm(now int64, ip netip.Addr) []Outgoing {
	e := n.entries[ip]
	if e == nil {
		if n.claim.lost || n.full() {
			return nil
		}
		e = n.add(ip)
	} else if e.tries > 0 {
		return nil // is being asked already
	}
	e.tries = 1
	n.set(e, now+retryAfter)
	return []Outgoing{n.request(ip, nil)} // it may have another address now
}

// Tick repeats requests, gives up on hosts that do not answer, confirms stale entries,
// and announces an address that turned out to be nobody else's.
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

// Deadline is when Tick is due.
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

// set says when an entry needs attention next.
func (n *Table) set(e *entry, at int64) {
	e.at = at
	heap.Fix(&n.due, e.index)
}

// request asks for a neighbour: at its Ethernet address, or where all hear it.
func (n *Table) request(ip netip.Addr, to *wire.MAC) Outgoing {
	if ip.Is4() {
		return n.arpRequest(ip.As4(), to)
	}
	return n.solicit(ip.As16(), to)
}

// Announce tells the link that the port has come up: neighbours that remember an
// older Ethernet address learn the new one. An IPv6 address is first asked for
// (RFC 4862 section 5.4); it is announced by Tick if nobody else has it.
func (n *Table) Announce(now int64) []Outgoing {
	switch {
	case n.ip.IsUnspecified():
		return nil
	case n.ip.Is4():
		return n.announceARP()
	}
	return n.probe(now)
}
