package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pathmtu"
	"urdma/wire"
)

// Address is an interface's network configuration.
type Address struct {
	Prefix  netip.Prefix // our address with the length of its network; unspecified: none yet
	Gateway netip.Addr   // zero: none
	// SocketPort is the UDP port number of peers' sockets, on a port of datagrams.
	SocketPort uint16
}

// Link is the link-layer address of the other end: a neighbour's Ethernet address, or on a port of
// datagrams the UDP port number of a peer's socket.
type Link struct {
	MAC  wire.MAC
	Port uint16
}

// Link returns the link to ourselves.
func (n *Interface) Link() Link { return Link{MAC: n.info.MAC, Port: n.addr.SocketPort} }

// Interface is one queue of a port with its network configuration. The worker owns it. The port carries
// frames or datagrams (datagrams.go); the distinction costs one comparison per packet.
type Interface struct {
	Dev     int // device number
	Stats   Stats
	Batches Batches // for a port of datagrams
	// Keepable is how many datagrams can be kept (Keep) at a time, on all accounts; Kept is how many are.
	Keepable, Kept int
	// Lost, if set, is called once when another host is found to have our IPv6 address: the interface is
	// cut off from then on, and sends nothing. by is that host's Ethernet address.
	Lost func(by wire.MAC)
	// Kernel, if set, gets the frames that are not only for us, and copies those it wants; sum and at are
	// as for wire.UnfinishedChecksum.
	Kernel func(frame []byte, sum, at int) bool
	// Contested, if set, is called when the host at an Ethernet address uses our IPv4 address, at most
	// every ten seconds.
	Contested func(by wire.MAC)
	// Tap, if set, is shown each packet: a received one before it is processed, and one to be sent when it is
	// queued for the port.
	Tap func(n *Interface, p *port.Packet, sent bool)
	// Raw, if set, is shown each packet like Tap, on behalf of raw packet queue pairs.
	Raw func(p *port.Packet, sent bool)

	clock *clock.Clock
	queue port.Queue
	info  port.Info
	mtu   int
	addr  Address
	own   map[wire.IPv4]bool // addresses of this machine's ports
	six   host6
	rx    receiver
	tx    transmitter

	seal    Seal                     // from CarryBare; else nil
	sealing [wire.UDP6HeaderLen]byte // buffer for the headers that the CRC covers
	unused  [][]byte                 // memory for datagrams that are kept, which grows with use

	neighbours neighbours
	paths      map[netip.Addr]map[*Path]struct{} // by next hop
	groups     groups

	mtus     *pathmtu.Table // nil: path MTUs are not discovered
	mtuTimer *clock.Timer
	answered answered
}

// Stats counts packets that were not returned by Next.
type Stats struct {
	Dropped map[Drop]uint64
	Last    Drop // the reason for the last one
}

// Drop is a reason for dropping a packet.
type Drop string

// Reasons of this package, in addition to those of package wire for invalid headers.
const (
	DropChecksum    Drop = "checksum wrong"
	DropGroupSource Drop = "ethernet: source is a group address"
	DropSource      Drop = "ipv4: source is no other host's address"
	DropSelf        Drop = "udp: we have sent it to a group"
	DropLeft        Drop = "udp: the group was left"
	DropSource6     Drop = "ipv6: source is no other host's address"
	DropDuplicate   Drop = "ipv6: another host has this address (duplicate address detection)"
	DropKernel      Drop = "kernel interface: more frames than the kernel takes"
	DropProbes      Drop = "path: more probes than are answered"
	DropEchoes      Drop = "icmp: more echo requests than are answered"
	DropQuestions   Drop = "neighbours: more questions than are answered"
)

// New returns the interface of a port's queue 0. The next Poll may return its first frames.
func New(dev int, p port.Port, a Address, c *clock.Clock) *Interface {
	n := &Interface{Dev: dev, clock: c, queue: p.Queue(0), info: p.Info(), mtu: p.Info().MTU, addr: a,
		paths: map[netip.Addr]map[*Path]struct{}{}, own: map[wire.IPv4]bool{}, six: host6{own: map[wire.IPv6]bool{}}}
	n.six.n = n
	n.Keepable = keepableOf(n.info.MTU, n.info.ReceiveWindow)
	n.AddOwn(n.IP())
	n.Stats.Dropped = map[Drop]uint64{}
	for _, why := range []Drop{DropChecksum, DropGroupSource, DropSource, DropSelf, DropLeft, DropSource6, DropDuplicate,
		DropKernel, DropProbes, DropEchoes, DropQuestions} {
		n.Stats.Dropped[why] = 0
	}
	for _, why := range wire.PacketErrors {
		n.Stats.Dropped[Drop(why.Error())] = 0
	}
	n.SetBursts(defaultBurst, defaultBurst)
	n.neighbours.init(n)
	n.groups = groups{n: n, joined: map[netip.Addr]*joined{}, timer: clock.NewTimer(n.groups.reportDue)}
	n.groups.sockets, _ = p.(port.Grouper)
	n.groups.joinSolicited()
	return n
}

// AddOwn adds the address of another port of this machine: no packet from the network can have it as its
// source.
func (n *Interface) AddOwn(a netip.Addr) {
	if a.Is4() {
		n.own[a.As4()] = true
	} else {
		n.six.own[a.As16()] = true
	}
}

// ForgetOwn undoes AddOwn.
func (n *Interface) ForgetOwn(a netip.Addr) {
	if a.Is4() {
		delete(n.own, a.As4())
	} else {
		delete(n.six.own, a.As16())
	}
}

// Renumber gives the interface another address of the same family, or the unspecified address, and
// announces it. Paths from the old address continue to send, but nobody receives the answers.
func (n *Interface) Renumber(a netip.Prefix) {
	if a.Addr() == n.IP() {
		n.addr.Prefix = a
		return
	}
	n.groups.leaveSolicited()
	n.neighbours.table.GiveUp()
	n.addr.Prefix, n.tx.cut = a, false
	n.neighbours.begin()
	n.groups.joinSolicited()
	n.Announce()
}

// SetBursts sets how many packets are exchanged with the port at a time; call it before the first Poll.
func (n *Interface) SetBursts(rx, tx int) {
	n.rx.p, n.tx.p = make([]port.Packet, rx), make([]port.Packet, tx)
}

// Bursts returns the values from SetBursts.
func (n *Interface) Bursts() (rx, tx int) { return len(n.rx.p), len(n.tx.p) }

// IP returns our address.
func (n *Interface) IP() netip.Addr { return n.addr.Prefix.Addr() }

// MAC returns our Ethernet address.
func (n *Interface) MAC() wire.MAC { return n.info.MAC }

// MTU returns the length of the largest IP packet, in bytes.
func (n *Interface) MTU() int { return n.mtu }

// SetMTU limits the packets of paths used from now on to mtu, or to the port's largest packet.
func (n *Interface) SetMTU(mtu int) { n.mtu = min(mtu, n.info.MTU) }

// Receives reports whether packets can arrive: from the network or from other workers.
func (n *Interface) Receives() bool { return n.info.Wire || n.info.Siblings }

// Siblings reports whether packets can arrive from other workers.
func (n *Interface) Siblings() bool { return n.info.Siblings }

// MaxDatagram returns the length of the largest UDP payload, in bytes.
func (n *Interface) MaxDatagram() int {
	size := n.mtu - n.headerLen()
	if n.info.Datagrams && n.seal == nil {
		size -= wire.EncapLen
	}
	return size
}

// headerLen returns the length of an IP and a UDP header, without options.
func (n *Interface) headerLen() int { return wire.IPLen(n.IP()) + wire.UDPLen }

// ReceiveWindow returns how many datagrams the port holds until they are polled; 0: unlimited.
func (n *Interface) ReceiveWindow() int { return n.info.ReceiveWindow }

// Drop counts a dropped packet.
func (n *Interface) Drop(why Drop) {
	n.Stats.Dropped[why]++
	n.Stats.Last = why
}

// ArmRx implements port.Queue's ArmRx, for a worker that is about to block.
func (n *Interface) ArmRx() (fd int, armed bool) { return n.queue.ArmRx() }

// DisarmRx undoes ArmRx.
func (n *Interface) DisarmRx() { n.queue.DisarmRx() }

// OfDatagrams reports whether an interface's port carries datagrams.
func OfDatagrams(n *Interface) bool { return n.info.Datagrams }
