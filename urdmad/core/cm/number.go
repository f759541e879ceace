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

// portNumbers are rdma_cm's port numbers, which are UDP's, and the ids that have
// them.
type portNumbers struct {
	net      Network
	addrs    []netip.Addr
	ids      map[uint16][]*ID        // bound to a number
	reserved map[uint16]*clock.Timer // see reserve
	// expected is Config.Expected, or nil.
	expected func(port uint16) bool
	shared   Shared // or nil
	next     uint16 // where the search for a free number goes on
}

// Shared are port numbers that an urdmad's workers share: each has those that it took.
type Shared interface {
	// Take gives this worker a number, until as many Gives; false if another has it.
	Take(number uint16) bool
	Give(number uint16)
	// Elsewhere reports whether another worker has a number, or had it a moment ago.
	Elsewhere(number uint16) bool
	// Chooses reports whether this worker may choose a number: no two may choose one.
	Chooses(number uint16) bool
}

func newPortNumbers(c *Config) portNumbers {
	return portNumbers{net: c.Network, addrs: c.Addrs, ids: map[uint16][]*ID{}, reserved: map[uint16]*clock.Timer{},
		expected: c.Expected, shared: c.Shared,
		next: firstEphemeral}
}

// elsewhere is Shared's.
func (n *portNumbers) elsewhere(port uint16) bool { return n.shared != nil && n.shared.Elsewhere(port) }

// maxSharing is how many ids may have one port number: all are looked at for each request.
const maxSharing = 1024

// add gives an id the number of its local address; false if another worker has that, or
// too many ids.
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

// remove takes it back.
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

// conflicts reports whether two ids can't have one port number, id at address a.
// Two that may reuse addresses share it until one of them listens.
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

// isDual reports whether an id at an address has its number in both families.
func (id *ID) isDual(a netip.Addr) bool { return a.Is6() && isAny(a) && !id.options.afOnly }

// free chooses a port number that neither an id nor a connection has. The id may
// be nil.
func (n *portNumbers) free(id *ID, a netip.Addr) (uint16, bool) {
	if id == nil {
		id = &ID{} // nobody's: no option is set
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
		if n.net.ConnAt(dev, port) != nil {
			return true
		}
	}
	return false
}

// Programs that serve one connection after another destroy the listening id and
// create the next (perftest does), and a peer's request may fall in between.
// Others tell their peer the port number before they listen (qperf up to 0.4.11).
// For this long a port number does not refuse once its listener has left, or since
// an id was bound to it; the peer asks again. ib_write_bw sleeps a second in
// between.
const listenerGrace = 2 * clock.Second

// reserve: the listener has left a port number.
func (n *portNumbers) reserve(port uint16) {
	t := n.reserved[port]
	if t == nil {
		t = clock.NewTimer(func() { delete(n.reserved, port) })
		n.reserved[port] = t
	}
	n.net.Set(t, n.net.Now()+listenerGrace)
}

// isReserved reports whether a listener may come, or come back, to a port number.
func (n *portNumbers) isReserved(port uint16) bool {
	return n.reserved[port] != nil || n.mayListen(port) || n.expected != nil && n.expected(port)
}

// mayListen reports whether an id was bound to a port number a moment ago.
func (n *portNumbers) mayListen(port uint16) bool {
	for _, id := range n.ids[port] {
		if id.state == bound && n.net.Now()-id.boundAt < listenerGrace {
			return true
		}
	}
	return false
}
