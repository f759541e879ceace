package neighbour

import (
	"container/heap"
	"math"

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

// Outgoing is an ARP packet to send to an Ethernet address.
type Outgoing struct {
	Dst wire.MAC
	ARP wire.ARP
}

// Waiter is called once: ok with the address, or !ok when nobody answered.
type Waiter func(mac wire.MAC, ok bool)

type entry struct {
	ip      wire.IPv4
	mac     wire.MAC
	known   bool
	tries   int
	at      int64 // next request, or when a known entry turns stale
	changed int64 // when it got another mac last
	index   int   // in Table.due
	waiting []Waiter
}

// Table maps the IPv4 addresses of one link to Ethernet addresses.
type Table struct {
	// Changed, if set, is called when a neighbour is learnt or has moved to
	// another Ethernet address.
	Changed func(wire.IPv4, wire.MAC)

	mac     wire.MAC
	ip      wire.IPv4
	entries map[wire.IPv4]*entry
	due     dueHeap // every entry, by its time
}

// broadcast is every station.
var broadcast = wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// New returns the empty table of a port.
func New(mac wire.MAC, ip wire.IPv4) *Table {
	return &Table{mac: mac, ip: ip, entries: map[wire.IPv4]*entry{}}
}

// Lookup returns the address if it is known now.
func (n *Table) Lookup(ip wire.IPv4) (wire.MAC, bool) {
	if e := n.entries[ip]; e != nil && e.known {
		return e.mac, true
	}
	return wire.MAC{}, false
}

// Resolve calls w with the Ethernet address of ip: at once if it is known, else
// when it answers or has not answered five requests in a second. now is in
// nanoseconds.
func (n *Table) Resolve(now int64, ip wire.IPv4, w Waiter) []Outgoing {
	e := n.entries[ip]
	if e != nil && e.known {
		w(e.mac, true)
		return nil
	}
	if e == nil {
		if n.full() {
			w(wire.MAC{}, false)
			return nil
		}
		e = n.add(ip)
	}
	e.waiting = append(e.waiting, w)
	if len(e.waiting) > 1 {
		return nil
	}
	e.tries = 1
	n.set(e, now+retryAfter)
	return []Outgoing{n.request(ip, broadcast)}
}

// full: beside the entries that strangers may make there is room for as many of
// our own.
func (n *Table) full() bool { return len(n.entries) >= 2*maxEntries }

// Packet takes an ARP packet from the wire (RFC 826, packet reception): it
// answers requests for our address and learns who spoke to us.
//
// A request without a sender's address is a probe, whether the address is free
// (RFC 5227 section 2.1.1): it is answered, and there is nothing to learn.
func (n *Table) Packet(now int64, a *wire.ARP) []Outgoing {
	forUs := a.TargetIP == n.ip
	probe := a.SenderIP == wire.IPv4{}
	if a.SenderIP == n.ip || a.SenderMAC.IsGroup() || a.SenderIP.IsGroup() && !probe {
		return nil
	}
	if !probe {
		n.meet(now, a, forUs)
	}
	if !forUs || a.Op != wire.ARPRequest {
		return nil
	}
	return []Outgoing{{Dst: a.SenderMAC, ARP: wire.ARP{Op: wire.ARPReply, SenderMAC: n.mac, SenderIP: n.ip,
		TargetMAC: a.SenderMAC, TargetIP: a.SenderIP}}}
}

// meet takes who spoke: a neighbour we know of, or one who wants to talk to us.
func (n *Table) meet(now int64, a *wire.ARP, forUs bool) {
	e := n.entries[a.SenderIP]
	if e == nil && forUs && len(n.entries) < maxEntries {
		e = n.add(a.SenderIP)
	}
	if e != nil {
		n.learn(now, e, a.SenderMAC)
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
func (n *Table) Confirm(now int64, ip wire.IPv4) []Outgoing {
	e := n.entries[ip]
	if e == nil {
		if n.full() {
			return nil
		}
		e = n.add(ip)
	} else if e.tries > 0 {
		return nil // is being asked already
	}
	e.tries = 1
	n.set(e, now+retryAfter)
	return []Outgoing{n.request(ip, broadcast)} // it may have another address now
}

// Announce is the gratuitous ARP of a port that has just come up: neighbours
// that remember an older address learn the new one.
func (n *Table) Announce() []Outgoing {
	return []Outgoing{{Dst: broadcast, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip,
		TargetIP: n.ip}}}
}

// Tick repeats requests, gives up on who does not answer, and confirms stale
// entries.
func (n *Table) Tick(now int64) (out []Outgoing) {
	for len(n.due) > 0 && n.due[0].at <= now {
		e := n.due[0]
		if e.tries == maxTries {
			n.giveUp(e)
			continue
		}
		to := broadcast
		if e.known && e.tries == 0 {
			to = e.mac
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
		return never
	}
	return n.due[0].at
}

func (n *Table) add(ip wire.IPv4) *entry {
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

func (n *Table) request(ip wire.IPv4, to wire.MAC) Outgoing {
	return Outgoing{Dst: to, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip, TargetIP: ip}}
}
