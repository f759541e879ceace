package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/pathmtu"
	"urdma/wire"
)

// Address is an interface's place in the network.
type Address struct {
	Prefix  netip.Prefix // our address with the length of its network; unspecified: none yet
	Gateway netip.Addr   // zero: none
	// SocketPort is where the sockets of peers listen, on a port of datagrams.
	SocketPort uint16
}

// Link is how the other end is reached: a neighbour by its Ethernet address, or
// a peer on a port of datagrams by the UDP port number of its socket.
type Link struct {
	MAC  wire.MAC
	Port uint16
}

// Link is the link that leads to ourselves.
func (n *Interface) Link() Link { return Link{MAC: n.info.MAC, Port: n.addr.SocketPort} }

// Tap is shown the frames of an interface.
type Tap interface {
	// Received shows a frame before anything is done with it.
	Received(n *Interface, frame []byte)
	// Handled says what became of the frame received last; the note is empty if
	// nothing remarkable happened.
	Handled(note string)
	// Sent shows a frame that waits for the port to take it.
	Sent(n *Interface, frame []byte)
}

// Interface is one queue of a port with its place in the network. The worker
// owns it. The port carries frames, or datagrams (datagrams.go): the difference
// is a comparison a packet.
type Interface struct {
	Dev     int // device number
	Stats   Stats
	Batches Batches // of a port of datagrams
	// Lost, if set, is called once, when another host turns out to have our IPv6 address:
	// the interface is cut off from then on, and what is sent goes nowhere. by is that
	// host's Ethernet address.
	Lost func(by wire.MAC)
	// Kernel, if set, is offered the frames that are not for us, or not for us alone, and
	// copies what it takes; sum and at are wire.UnfinishedChecksum's.
	Kernel func(frame []byte, sum, at int) bool
	// Contested, if set, is called when the host at an Ethernet address is seen to use our
	// IPv4 address, at most every ten seconds.
	Contested func(by wire.MAC)

	clock *clock.Clock
	queue port.Queue
	info  port.Info
	mtu   int
	addr  Address
	own   map[wire.IPv4]bool // addresses of this machine's ports
	six   host6
	rx    receiver
	tx    transmitter
	tap   Tap    // nil while nobody looks
	shown []byte // room for a frame made up for the tap

	seal    Seal                     // of what CarryBare has said; else nil
	sealing [wire.UDP6HeaderLen]byte // room for headers that it covers
	note    string
	kept    int // datagrams on all accounts

	neighbours neighbours
	paths      map[netip.Addr]map[*Path]struct{} // by next hop
	groups     groups

	mtus     *pathmtu.Table // nil: paths are not looked at
	mtuTimer *clock.Timer
	answered answered
}

// Stats counts what was not handed up.
type Stats struct {
	Dropped map[Drop]uint64
}

// Drop is a reason for which a packet is dropped.
type Drop string

// Reasons of this package beside those of package wire, which says what is wrong
// with a header.
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

// New returns the interface of a port's queue 0. Its first frames may come with
// the next Poll.
func New(dev int, p port.Port, a Address, c *clock.Clock) *Interface {
	n := &Interface{Dev: dev, clock: c, queue: p.Queue(0), info: p.Info(), mtu: p.Info().MTU, addr: a,
		paths: map[netip.Addr]map[*Path]struct{}{}, own: map[wire.IPv4]bool{}, six: host6{own: map[wire.IPv6]bool{}}}
	n.six.n = n
	n.AddOwn(n.IP())
	n.Batches.Datagrams = n.info.Datagrams
	n.Stats.Dropped = map[Drop]uint64{}
	for _, why := range []Drop{DropChecksum, DropGroupSource, DropSource, DropSelf, DropLeft, DropSource6, DropDuplicate, DropKernel, DropProbes, DropEchoes, DropQuestions} {
		n.Stats.Dropped[why] = 0
	}
	for _, why := range wire.PacketErrors {
		n.Stats.Dropped[Drop(why.Error())] = 0
	}
	n.rx.current = none
	n.SetBursts(defaultBurst, defaultBurst)
	n.neighbours.init(n)
	n.groups = groups{n: n, joined: map[netip.Addr]*joined{}, timer: clock.NewTimer(n.groups.reportDue)}
	n.groups.sockets, _ = p.(port.Grouper)
	n.groups.joinSolicited()
	return n
}

// AddOwn tells the interface of the address of another port of this machine, which
// nothing that arrives can come from.
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

// Renumber gives the interface another address, of the same family, or the unspecified
// one, and tells the link. Paths from the old one lead on, to answers that nobody gets.
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

// SetBursts says how many frames are taken from and given to the port at a time;
// before the first Poll.
func (n *Interface) SetBursts(rx, tx int) {
	n.rx.p, n.tx.p = make([]port.Packet, rx), make([]port.Packet, tx)
}

// Bursts is what SetBursts said.
func (n *Interface) Bursts() (rx, tx int) { return len(n.rx.p), len(n.tx.p) }

// IP is our address, of either family.
func (n *Interface) IP() netip.Addr { return n.addr.Prefix.Addr() }

// MAC is our Ethernet address.
func (n *Interface) MAC() wire.MAC { return n.info.MAC }

// MTU is the largest IP packet, in bytes.
func (n *Interface) MTU() int { return n.mtu }

// SetMTU has packets of paths that are used from now on be no longer than the port's
// largest, or this.
func (n *Interface) SetMTU(mtu int) { n.mtu = min(mtu, n.info.MTU) }

// Wire is false for an interface that reaches nobody: the loopback driver's.
func (n *Interface) Wire() bool { return n.info.Wire }

// Receives reports whether packets ever come: from the wire, or from other workers.
func (n *Interface) Receives() bool { return n.info.Wire || n.info.Siblings }

// Siblings reports whether packets come from other workers, too.
func (n *Interface) Siblings() bool { return n.info.Siblings }

// MaxDatagram is the largest UDP payload, in bytes.
func (n *Interface) MaxDatagram() int {
	size := n.mtu - n.headerLen()
	if n.info.Datagrams && n.seal == nil {
		size -= wire.EncapLen
	}
	return size
}

// headerLen is the length of an IP and a UDP header, without options.
func (n *Interface) headerLen() int { return wire.IPLen(n.IP()) + wire.UDPLen }

// ReceiveWindow is how many datagrams the port holds until they are polled, 0
// where that bounds nothing.
func (n *Interface) ReceiveWindow() int { return n.info.ReceiveWindow }

// Retainable is how many datagrams can be kept (Keep) at a time, on all accounts.
func (n *Interface) Retainable() int { return n.queue.Retainable() }

// SetTap has t see every frame from now on; nil ends that. Between frames.
func (n *Interface) SetTap(t Tap) { n.tap = t }

// Note says what became of the frame being handled, for taps.
func (n *Interface) Note(text string) { n.note = text }

// Drop counts a packet that is dropped, and notes it.
func (n *Interface) Drop(why Drop) {
	n.Stats.Dropped[why]++
	n.note = "dropped: " + string(why)
}

// ArmRx and DisarmRx are port.Queue's, for a worker that is about to block.
func (n *Interface) ArmRx() (fd int, armed bool) { return n.queue.ArmRx() }

// DisarmRx undoes ArmRx.
func (n *Interface) DisarmRx() { n.queue.DisarmRx() }

// OfDatagrams reports whether an interface is that of a port of datagrams.
func OfDatagrams(n *Interface) bool { return n.info.Datagrams }
