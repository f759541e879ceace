package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// defaultBurst is the number of packets exchanged with the port at a time.
const defaultBurst = 32

// receiver has the packets of the last burst: p[at:have] are still to be processed, those before are released
// together with them.
type receiver struct {
	p        []port.Packet // as long as a burst
	at, have int
	private  [wire.MaxHeaderLen]byte // private copy of the head of a frame, which its sender can't change
	long     []byte                  // private copy of a longer message
	datagram Datagram
	origin   origin // origin of datagram, on a port of datagrams
	heads    []byte // in headRoom: headers made for bare datagrams of headsFor bytes; nil: none yet
	headsFor int
	headRoom [wire.UDP6HeaderLen]byte
}

// Datagram is a UDP datagram to our address. It is valid until the next call of Next.
type Datagram struct {
	Src, Dst netip.AddrPort
	Link     Link   // the link by which it arrived
	Head     []byte // the payload's first bytes, enough for all headers, in private memory
	Data     []byte // the payload; its sender may still change it

	packet *port.Packet
	from   int // offset of Data in the frame
}

// Poll takes the next burst from the port if the last one was processed, and returns how many packets wait.
// more says that the port may have others.
func (n *Interface) Poll() (waiting int, more bool) {
	if !n.Receives() {
		return 0, false
	}
	r := &n.rx
	if r.at == r.have { // false if a fault in a client's memory interrupted the last burst
		n.giveBack()
		r.have = n.queue.Rx(r.p)
	}
	return r.have - r.at, r.have == len(r.p)
}

// Next returns the next datagram for us, or nil when the burst is done; it processes all other packets
// itself. It releases the datagram returned before, even if its processing ended in a fault.
func (n *Interface) Next() *Datagram {
	r := &n.rx
	for r.at < r.have {
		p := &r.p[r.at]
		r.at++
		if n.Tap != nil && !p.Flags.Has(port.RxAgain) {
			n.Tap(n, p, false)
		}
		if n.Raw != nil {
			n.Raw(p, false)
		}
		if n.info.Datagrams && n.encapsulated(p) || !n.info.Datagrams && n.frame(p) {
			return &r.datagram
		}
	}
	n.giveBack()
	return nil
}

func (n *Interface) giveBack() {
	r := &n.rx
	if r.at > 0 {
		n.queue.Free(r.p[:r.at])
	}
	r.at, r.have = 0, 0
}

// frame handles one frame; it returns true for a datagram to be returned by Next.
func (n *Interface) frame(p *port.Packet) bool {
	head := p.Data[:min(len(p.Data), wire.MaxHeaderLen)]
	if n.info.SharedRx {
		head = n.rx.private[:copy(n.rx.private[:], head)]
	}
	var f wire.Frame
	err := f.Parse(head, len(p.Data))
	if n.Kernel != nil && !n.share(&f, err, p) {
		return false
	}
	if err != nil {
		n.Drop(Drop(err.Error()))
		return false
	}
	switch {
	case f.Src.IsGroup():
		n.Drop(DropGroupSource)
	case f.Type == wire.EtherTypeARP:
		n.neighbours.arp(head[f.PayloadOff:])
	case f.Type == wire.EtherTypeIPv6:
		return n.six.frame(&f, head, p)
	case f.Type != wire.EtherTypeIPv4 || !n.takes(f.DstIP):
	case f.Proto != wire.ProtoIGMP && !p.Flags.Has(port.RxInside) && n.martian(f.SrcIP):
		n.Drop(DropSource)
	case !n.checksumsRight(&f, head, p):
		n.Drop(DropChecksum)
	case f.Proto == wire.ProtoUDP:
		n.datagram(&f, netip.AddrFrom4(f.SrcIP), netip.AddrFrom4(f.DstIP), head, p)
		return true
	case f.Proto == wire.ProtoICMP:
		n.icmp(&f, p)
	case f.Proto == wire.ProtoIGMP:
		n.groups.answer(n.message(&f, head, p))
	}
	return false
}

// message returns the payload of an IP packet of any length, in memory that nobody changes until the next
// frame.
func (n *Interface) message(f *wire.Frame, head []byte, p *port.Packet) []byte {
	end := f.PayloadOff + f.PayloadLen
	switch {
	case end <= len(head):
		return head[f.PayloadOff:end]
	case !n.info.SharedRx:
		return p.Data[f.PayloadOff:end]
	}
	n.rx.long = append(n.rx.long[:0], p.Data[f.PayloadOff:end]...)
	return n.rx.long
}

// martian reports an address that no other host has (RFC 1122 section 3.2.1.3), so that a sender with an
// address of this machine must be on this machine. IGMP is exempt: switches send queries from 0.0.0.0.
func (n *Interface) martian(src wire.IPv4) bool {
	return src.IsGroup() || src[0] == 127 || n.own[src]
}

func (n *Interface) datagram(f *wire.Frame, src, dst netip.Addr, head []byte, p *port.Packet) {
	end := f.PayloadOff + f.PayloadLen
	n.rx.datagram = Datagram{
		Src:  netip.AddrPortFrom(src, f.SrcPort),
		Dst:  netip.AddrPortFrom(dst, f.DstPort),
		Link: Link{MAC: f.Src},
		Head: head[min(f.PayloadOff, len(head)):min(len(head), end)], Data: p.Data[f.PayloadOff:end],
		packet: p, from: f.PayloadOff,
	}
}

// share gives the kernel frames that are not only for us; it returns false if a frame is not for us at all.
// UDP datagrams to our address go to the kernel only if their handler calls Decline.
func (n *Interface) share(f *wire.Frame, broken error, p *port.Packet) (ours bool) {
	four, six := f.Type == wire.EtherTypeIPv4, f.Type == wire.EtherTypeIPv6
	toUs := broken == nil && (four && n.takes(f.DstIP) || six && n.six.takes(f.Dst6))
	if toUs && f.Proto == wire.ProtoUDP {
		return true
	}
	n.toKernel(p)
	return broken == nil && (f.Type == wire.EtherTypeARP || toUs &&
		(four && f.Proto == wire.ProtoIGMP || six && f.Proto == wire.ProtoICMPv6))
}

// Decline gives the kernel a datagram that has no receiver here; it returns false if the port is not shared
// with the kernel.
func (n *Interface) Decline(d *Datagram) bool {
	if n.Kernel == nil {
		return false
	}
	n.toKernel(d.packet)
	return true
}

// toKernel gives a frame to the kernel, except frames sent or forwarded by a worker of this urdmad. If the
// port guarantees a frame's integrity, its sender may be on the same machine and have computed no checksum.
func (n *Interface) toKernel(p *port.Packet) {
	if p.Flags&(port.RxInside|port.RxAgain) != 0 {
		return
	}
	var sum, at int
	if p.Flags.Has(port.RxUDPGood) {
		sum, at = wire.UnfinishedChecksum(p.Data)
	}
	if !n.Kernel(p.Data, sum, at) {
		n.Drop(DropKernel)
	}
}

// checksumsRight verifies the checksums that the port has not verified.
func (n *Interface) checksumsRight(f *wire.Frame, head []byte, p *port.Packet) bool {
	if p.Flags&(port.RxIPv4Bad|port.RxUDPBad) != 0 {
		return false
	}
	if !p.Flags.Has(port.RxIPv4Good) && !wire.VerifyIPv4Checksum(head[f.IPHeaderOff:f.IPHeaderOff+f.IPHeaderLen]) {
		return false
	}
	if f.Proto != wire.ProtoUDP || f.UDPChecksum == 0 || p.Flags.Has(port.RxUDPGood) {
		return true
	}
	return n.udpChecksumRight(f, p)
}

// udpChecksumRight verifies a UDP checksum. An interface of the kernel may deliver frames from a virtual
// machine or a bridge, which never were on a network and have unfinished checksums.
func (n *Interface) udpChecksumRight(f *wire.Frame, p *port.Packet) bool {
	return wire.VerifyUDPChecksum(f, p.Data[f.PayloadOff-wire.UDPLen:f.PayloadOff+f.PayloadLen]) ||
		n.info.Interface != "" && wire.UnfinishedUDPChecksum(f)
}

// icmp answers echo requests. It ignores all other messages, even "port unreachable": a kernel with the peer's
// address sends that for ports of the peer's urdmad, of which the kernel knows nothing. Another process may
// change the buffer at any time, so only f is used, which was parsed from a private copy of the headers.
func (n *Interface) icmp(f *wire.Frame, p *port.Packet) {
	b := n.Alloc()
	if b == nil || len(p.Data) > len(b) {
		return
	}
	size := copy(b, p.Data)
	switch {
	case wire.EchoReply(f, b[:size], n.info.MAC) != nil:
	case n.answered.echoes.one(n.clock.Now):
		n.commit(size)
	default:
		n.Drop(DropEchoes)
	}
}
