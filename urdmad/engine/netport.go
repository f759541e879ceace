package engine

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/clock"
	"urdma/urdmad/host"
	"urdma/wire"
)

// Address is a port's place in the network.
type Address struct {
	Prefix  netip.Prefix // our address with the length of its network
	Gateway netip.Addr   // zero: none
}

// IP is our address.
func (a Address) IP() wire.IPv4 { return a.Prefix.Addr().As4() }

const burst = 32

// netPort is a port with its place in the network and its buffers. Received
// packets are rx[rxAt:rxHave]; tx[:txUsed] are built and wait for flush, tx[txUsed:txHave]
// are allocated ahead.
type netPort struct {
	e     *Engine
	dev   int
	port  port.Port
	queue port.Queue // this worker's
	info  port.Info
	addr  Address
	arp   *host.Neighbours
	// immediate: place Writes as they come, see placeEarly.
	immediate bool
	ipID      uint16

	armed  bool
	sent   bool // something went to the port since the last Flush
	rx     [burst]port.Packet
	rxAt   int // rx[rxAt:rxHave] wait to be handled
	rxHave int
	tx     [burst]port.Packet
	txUsed int
	txHave int

	head  [wire.MaxHeaderLen]byte // private copy of a frame's head
	conns [1 << 16]*Conn          // by our UDP port number

	arpTimer *clock.Timer
	past     Traffic // of connections that left their queue pairs
}

func newNetPort(e *Engine, dev int, p port.Port, a Address) *netPort {
	n := &netPort{e: e, dev: dev, port: p, queue: p.Queue(0), info: p.Info(), addr: a}
	n.arp = host.NewNeighbours(wire.MAC(n.info.MAC), a.IP())
	n.arpTimer = clock.NewTimer(n.tickARP)
	return n
}

// alloc returns a transmit buffer to build a frame in, or nil when the port's
// ring is full. Nothing is sent until commit.
func (n *netPort) alloc() []byte {
	if n.txUsed == n.txHave {
		n.push()
		n.txHave += n.queue.Alloc(n.tx[n.txHave:])
		if n.txUsed == n.txHave {
			return nil
		}
	}
	return n.tx[n.txUsed].Data
}

// commit queues the frame built in the buffer that alloc returned last.
func (n *netPort) commit(length int) {
	p := &n.tx[n.txUsed]
	p.Data = p.Data[:length]
	n.txUsed++
	if len(n.e.taps) > 0 {
		n.e.tapSent(n, p.Data)
	}
}

// push hands the built frames to the port and moves the rest to the front.
func (n *netPort) push() {
	if n.txUsed == 0 {
		return
	}
	taken := n.queue.Tx(n.tx[:n.txUsed])
	n.sent = n.sent || taken > 0
	copy(n.tx[:], n.tx[taken:n.txHave])
	n.txUsed -= taken
	n.txHave -= taken
}

// flush ends a turn.
func (n *netPort) flush() {
	n.push()
	if n.sent || n.txUsed > 0 {
		n.queue.Flush()
		n.sent = false
	}
}

// nextIPID numbers the IPv4 packets of this port.
func (n *netPort) nextIPID() uint16 {
	n.ipID++
	return n.ipID
}

// nextHop is where packets to dst go on this port's network.
func (n *netPort) nextHop(dst wire.IPv4) (wire.IPv4, bool) {
	if n.addr.Prefix.Contains(netip.AddrFrom4(dst)) {
		return dst, true
	}
	if n.addr.Gateway.IsValid() {
		return n.addr.Gateway.As4(), true
	}
	return wire.IPv4{}, false
}

// sendARP sends the packets the neighbour table asks for and sets its timer.
func (n *netPort) sendARP(out []host.Outgoing) {
	for _, o := range out {
		b := n.alloc()
		if b == nil {
			break // as if lost: the table asks again
		}
		at := wire.PutEthernet(b, o.Dst, wire.MAC(n.info.MAC), wire.EtherTypeARP)
		n.commit(at + o.ARP.Put(b[at:]))
	}
	n.e.SetTimer(n.arpTimer, Time(n.arp.Deadline()))
}

func (n *netPort) tickARP() { n.sendARP(n.arp.Tick(int64(n.e.now))) }

// PlaceImmediately has device dev place RDMA Writes as they come, not in order.
func (e *Engine) PlaceImmediately(dev int) { e.ports[dev].immediate = true }
