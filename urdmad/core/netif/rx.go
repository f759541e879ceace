package netif

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// defaultBurst is how many frames are exchanged with the port at a time.
const defaultBurst = 32

// none is the index of no packet.
const none = -1

// receiver is what came with the last burst: p[at:have] wait to be handled,
// p[freeFrom:at] were handled and wait to be given back together.
type receiver struct {
	p        []port.Packet // as long as a burst
	at, have int
	freeFrom int
	current  int                     // being handled; none between frames
	private  [wire.MaxHeaderLen]byte // copy of a frame's head that its sender can't change
	long     []byte                  // the same of a message that is longer
	datagram Datagram
	origin   origin // of datagram, on a port of datagrams
	heads    []byte // in headRoom, made up for bare datagrams from there of headsFor bytes; nil: for none yet
	headsFor int
	headRoom [wire.UDP6HeaderLen]byte
}

// Datagram is a UDP datagram to our address. It is valid until Next is called
// again, unless it is kept.
type Datagram struct {
	Src, Dst netip.AddrPort
	Link     Link   // that it came by
	Head     []byte // the payload's first bytes, as many as all headers may take, in private memory
	Data     []byte // the payload; its sender may still change it

	packet *port.Packet
	from   int // where Data begins in the frame
	kept   bool
}

// Poll takes the next burst from the port, if the last was handled, and returns
// how many frames wait. more says that the port may have others.
func (n *Interface) Poll() (waiting int, more bool) {
	if !n.Receives() {
		return 0, false
	}
	r := &n.rx
	if r.at == r.have { // else a fault in a client's memory cut the last burst short
		n.finish() // the same with its last datagram
		n.giveBack()
		r.at, r.freeFrom = 0, 0
		r.have = n.queue.Rx(r.p)
	}
	return r.have - r.at, r.have == len(r.p)
}

// Next returns the next datagram for us, nil when the burst is done. Everything
// else in between is handled here. The datagram returned before is given back,
// also if handling it ended in a fault.
func (n *Interface) Next() *Datagram {
	r := &n.rx
	n.finish()
	for r.at < r.have {
		p := &r.p[r.at]
		r.current = r.at
		r.at++
		if n.tap != nil && !p.Flags.Has(port.RxAgain) {
			n.note = ""
			n.tap.Received(n, n.sightOf(p))
		}
		if n.info.Datagrams && n.encapsulated(p) || !n.info.Datagrams && n.frame(p) {
			return &r.datagram
		}
		n.finish()
	}
	n.giveBack()
	return nil
}

// finish ends the frame being handled. A packet that was kept leaves the run of
// those that go back together.
func (n *Interface) finish() {
	r := &n.rx
	if r.current == none {
		return
	}
	if n.tap != nil {
		n.tap.Handled(n.note)
	}
	if r.datagram.kept {
		r.datagram.kept = false
		n.free(r.freeFrom, r.current)
		r.freeFrom = r.current + 1
	}
	r.current = none
}

func (n *Interface) giveBack() {
	n.free(n.rx.freeFrom, n.rx.at)
	n.rx.freeFrom = n.rx.at
}

func (n *Interface) free(from, to int) {
	if from < to {
		n.queue.Free(n.rx.p[from:to])
	}
}

// frame handles one frame; true if it is a datagram to be handed up.
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

// message is the payload of an IP packet of any length, in memory that nobody changes
// until the next frame.
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

// martian reports an address that no other host has (RFC 1122 section 3.2.1.3): a sender
// that is taken for this machine by its address must be on it. IGMP is apart:
// switches ask from 0.0.0.0.
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

// share gives the kernel what is not ours alone; false: it is not ours at all. Of UDP
// datagrams to our address their handler tells (Decline).
func (n *Interface) share(f *wire.Frame, broken error, p *port.Packet) (ours bool) {
	four, six := f.Type == wire.EtherTypeIPv4, f.Type == wire.EtherTypeIPv6
	toUs := broken == nil && (four && n.takes(f.DstIP) || six && n.six.takes(f.Dst6))
	if toUs && f.Proto == wire.ProtoUDP {
		return true
	}
	n.toKernel(p)
	return broken == nil && (f.Type == wire.EtherTypeARP || toUs && (four && f.Proto == wire.ProtoIGMP || six && f.Proto == wire.ProtoICMPv6))
}

// Decline gives the kernel a datagram that nobody here wants; false: the port is not
// shared with it.
func (n *Interface) Decline(d *Datagram) bool {
	if n.Kernel == nil {
		return false
	}
	n.toKernel(d.packet)
	return true
}

// toKernel leaves out what a worker of this urdmad sends, and what another one passes on. Where
// the port vouches for a frame, its sender may be on the same machine and have computed no checksum.
func (n *Interface) toKernel(p *port.Packet) {
	if p.Flags&(port.RxInside|port.RxAgain) != 0 {
		return
	}
	n.Note("to the kernel's interface")
	var sum, at int
	if p.Flags.Has(port.RxUDPGood) {
		sum, at = wire.UnfinishedChecksum(p.Data)
	}
	if !n.Kernel(p.Data, sum, at) {
		n.Drop(DropKernel)
	}
}

// checksumsRight verifies what the port has not.
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

// udpChecksumRight verifies a UDP checksum. Over an interface of the kernel come frames
// that were on no wire, whose senders leave it unfinished: a virtual machine's, a bridge's.
func (n *Interface) udpChecksumRight(f *wire.Frame, p *port.Packet) bool {
	return wire.VerifyUDPChecksum(f, p.Data[f.PayloadOff-wire.UDPLen:f.PayloadOff+f.PayloadLen]) ||
		n.info.Interface != "" && wire.UnfinishedUDPChecksum(f)
}

// icmp answers echo requests; everything else, errors included, is ignored: a
// kernel that holds the same address sends errors for our ports. The buffer, too, may
// be shared with another process, so what counts is f, of the frame's private head.
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
