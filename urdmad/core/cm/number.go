package cm

import (
	"net/netip"

	"urdma/urdmad/core/clock"
)

// Port numbers that Bind chooses (RFC 6335 section 6).
const (
	firstEphemeral = 49152
	lastEphemeral  = 65535
)

// portNumbers has rdma_cm's port numbers, which are UDP port numbers, with their ids.
type portNumbers struct {
	net      Network
	addrs    []netip.Addr
	ids      map[uint16][]*ID        // the ids bound to a number
	reserved map[uint16]*clock.Timer // see reserve
	// expected is Config.Expected, or nil.
	expected func(port uint16) bool
	shared   Shared // or nil
	next     uint16 // where the search for a free number continues
}

// Shared has the port numbers that the workers of a urdmad share: each worker has those that it took.
type Shared interface {
	// Take reserves a number for this worker until as many calls of Give; false if another worker has it.
	Take(number uint16) bool
	Give(number uint16)
	// Elsewhere reports whether another worker has a number, or had it a moment ago.
	Elsewhere(number uint16) bool
	// Chooses reports whether this worker may choose a number for an id: no other worker may.
	Chooses(number uint16) bool
}

func newPortNumbers(c *Config) portNumbers {
	return portNumbers{net: c.Network, addrs: c.Addrs, ids: map[uint16][]*ID{}, reserved: map[uint16]*clock.Timer{},
		expected: c.Expected, shared: c.Shared,
		next: firstEphemeral}
}

// elsewhere is Shared.Elsewhere, if there are other workers.
func (n *portNumbers) elsewhere(port uint16) bool { return n.shared != nil && n.shared.Elsewhere(port) }

// maxSharing bounds the ids with the same port number: each request examines all of them.
const maxSharing = 1024

// add gives an id the port number of its local address; false if another worker has the number, or if too
// many ids have it.
func (n *portNumbers) add(id *ID) bool {
	port := id.local.Port()
	if len(n.ids[port]) >= maxSharing {
		return false
	}
	if n.shared != nil && !n.shared.Take(port) {
		return false
	}
	n.ids[port] = append(n.ids[port], id)
	return true
}

// remove undoes add.
func (n *portNumbers) remove(id *ID) {
	port := id.local.Port()
	list := n.ids[port]
	for i, other := range list {
		if other == id {
			list = append(list[:i], list[i+1:]...)
			if n.shared != nil {
				n.shared.Give(port)
			}
			break
		}
	}
	if len(list) == 0 {
		delete(n.ids, port)
	} else {
		n.ids[port] = list
	}
}

// taken reports whether an id can't be bound to a port number at an address.
func (n *portNumbers) taken(id *ID, a netip.AddrPort, reuse bool) bool {
	for _, other := range n.ids[a.Port()] {
		if id.conflicts(other, a.Addr(), reuse) {
			return true
		}
	}
	return false
}

// conflicts reports whether two ids can't have the same port number, with id at address a. If both may
// reuse addresses, they may share the number until one of them listens.
func (id *ID) conflicts(other *ID, a netip.Addr, reuse bool) bool {
	b := other.local.Addr()
	switch {
	case other == id, reuse && other.options.reuseAddr && other.state != listening:
		return false
	case a.Is4() != b.Is4() && !id.isDual(a) && !other.isDual(b):
		return false
	}
	return a == b || isAny(a) || isAny(b)
}

// isDual reports whether an id at an address uses its number in both address families.
func (id *ID) isDual(a netip.Addr) bool { return a.Is6() && isAny(a) && !id.options.afOnly }

// free chooses a port number that no id and no connection has. The id may be nil.
func (n *portNumbers) free(id *ID, a netip.Addr) (uint16, bool) {
	if id == nil {
		id = &ID{} // an id without options
	}
	for range lastEphemeral - firstEphemeral + 1 {
		p := n.next
		if n.next++; n.next < firstEphemeral {
			n.next = firstEphemeral
		}
		if n.shared != nil && (!n.shared.Chooses(p) || n.shared.Elsewhere(p)) {
			continue
		}
		if !n.taken(id, netip.AddrPortFrom(a, p), false) && !n.carriesData(p) {
			return p, true
		}
	}
	return 0, false
}

// carriesData reports whether a connection has a UDP port number.
func (n *portNumbers) carriesData(port uint16) bool {
	for dev := range n.addrs {
		if n.net.InUse(dev, port) {
			return true
		}
	}
	return false
}

// A program that serves one connection after another destroys the listening id and creates the next
// (perftest does), and a peer's request may arrive in between. Other programs tell their peer the port
// number before they listen (qperf up to 0.4.11). So for listenerGrace after its listener has closed, or
// after an id was bound to it, a port number does not refuse requests, and the peer repeats them.
// ib_write_bw sleeps for a second in between.
const listenerGrace = 2 * clock.Second

// reserve reserves a port number whose listener has closed.
func (n *portNumbers) reserve(port uint16) {
	t := n.reserved[port]
	if t == nil {
		t = clock.NewTimer(func() { delete(n.reserved, port) })
		n.reserved[port] = t
	}
	n.net.Set(t, n.net.Now()+listenerGrace)
}

// isReserved reports whether a listener may come, or return, to a port number.
func (n *portNumbers) isReserved(port uint16) bool {
	return n.reserved[port] != nil || n.mayListen(port) || n.expected != nil && n.expected(port)
}

// mayListen reports whether an id was bound to a port number less than listenerGrace ago.
func (n *portNumbers) mayListen(port uint16) bool {
	for _, id := range n.ids[port] {
		if id.state == bound && n.net.Now()-id.boundAt < listenerGrace {
			return true
		}
	}
	return false
}
