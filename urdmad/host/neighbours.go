package host

import (
	"math"

	"urdma/wire"
)

const (
	never      = math.MaxInt64
	retryAfter = int64(200e6) // ns between requests for one address
	maxTries   = 5
	staleAfter = int64(60e9) // then the entry is confirmed in the background
	maxEntries = 4096        // a flood of requests cannot grow the table past this
)

// Outgoing is an ARP packet to send to an Ethernet address.
type Outgoing struct {
	Dst wire.MAC
	ARP wire.ARP
}

// Waiter is called once: ok with the address, or !ok when nobody answered.
type Waiter func(mac wire.MAC, ok bool)

type neighbour struct {
	mac     wire.MAC
	known   bool
	tries   int
	at      int64 // next request, or when a known entry turns stale
	waiting []Waiter
}

// Neighbours maps the IPv4 addresses of one link to Ethernet addresses.
type Neighbours struct {
	mac   wire.MAC
	ip    wire.IPv4
	table map[wire.IPv4]*neighbour
}

// broadcast is every station.
var broadcast = wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// NewNeighbours returns the empty table of a port.
func NewNeighbours(mac wire.MAC, ip wire.IPv4) *Neighbours {
	return &Neighbours{mac: mac, ip: ip, table: map[wire.IPv4]*neighbour{}}
}

// Lookup returns the address if it is known now.
func (n *Neighbours) Lookup(ip wire.IPv4) (wire.MAC, bool) {
	if e := n.table[ip]; e != nil && e.known {
		return e.mac, true
	}
	return wire.MAC{}, false
}

// Resolve calls w with the Ethernet address of ip: at once if it is known, else
// when it answers or has not answered five requests in a second. now is in
// nanoseconds.
func (n *Neighbours) Resolve(now int64, ip wire.IPv4, w Waiter) []Outgoing {
	e := n.table[ip]
	if e != nil && e.known {
		w(e.mac, true)
		return nil
	}
	if e == nil {
		e = &neighbour{}
		n.table[ip] = e
	}
	e.waiting = append(e.waiting, w)
	if len(e.waiting) > 1 {
		return nil
	}
	e.tries, e.at = 1, now+retryAfter
	return []Outgoing{n.request(ip, broadcast)}
}

// Packet takes an ARP packet from the wire (RFC 826, packet reception): it
// answers requests for our address and learns who spoke to us.
//
// A request without a sender's address is a probe, whether the address is free
// (RFC 5227 section 2.1.1): it is answered, and there is nothing to learn.
func (n *Neighbours) Packet(now int64, a *wire.ARP) []Outgoing {
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
func (n *Neighbours) meet(now int64, a *wire.ARP, forUs bool) {
	e := n.table[a.SenderIP]
	if e == nil && forUs && len(n.table) < maxEntries {
		e = &neighbour{}
		n.table[a.SenderIP] = e
	}
	if e != nil {
		n.learn(now, e, a.SenderMAC)
	}
}

func (n *Neighbours) learn(now int64, e *neighbour, mac wire.MAC) {
	e.mac, e.known, e.tries, e.at = mac, true, 0, now+staleAfter
	waiting := e.waiting
	e.waiting = nil
	for _, w := range waiting {
		w(mac, true)
	}
}

// Announce is the gratuitous ARP of a port that has just come up: neighbours
// that remember an older address learn the new one.
func (n *Neighbours) Announce() []Outgoing {
	return []Outgoing{{Dst: broadcast, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip,
		TargetIP: n.ip}}}
}

// Tick repeats requests, gives up on who does not answer, and confirms stale
// entries.
func (n *Neighbours) Tick(now int64) (out []Outgoing) {
	for ip, e := range n.table {
		if e.at > now {
			continue
		}
		if e.tries == maxTries {
			delete(n.table, ip)
			for _, w := range e.waiting {
				w(wire.MAC{}, false)
			}
			continue
		}
		to := broadcast
		if e.known {
			to = e.mac
		}
		e.tries++
		e.at = now + retryAfter
		out = append(out, n.request(ip, to))
	}
	return out
}

// Deadline is when Tick is due.
func (n *Neighbours) Deadline() int64 {
	at := int64(never)
	for _, e := range n.table {
		at = min(at, e.at)
	}
	return at
}

func (n *Neighbours) request(ip wire.IPv4, to wire.MAC) Outgoing {
	return Outgoing{Dst: to, ARP: wire.ARP{Op: wire.ARPRequest, SenderMAC: n.mac, SenderIP: n.ip, TargetIP: ip}}
}
