package datagram

import (
	"net/netip"

	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
	"urdma/wire/roce"
)

// form is how messages look on a port's wire: as docs/WIRE.md has them, or RoCEv2's. What
// arrives in RoCEv2's package roce hands to Message and MessageUC.
type form uint8

const (
	ours form = iota
	roceV2
)

// SpeakRoCE has messages of the port be RoCEv2's, before the first Poll.
func (p *Port) SpeakRoCE() { p.form = roceV2 }

// port is the UDP port number that messages come from and go to.
func (f form) port() uint16 {
	if f == roceV2 {
		return roce.Port
	}
	return wire.DatagramPort
}

func opcodeOf(h *wire.Datagram) roce.Opcode {
	if h.HasImmediate {
		return roce.UD | roce.SendOnlyImmediate
	}
	return roce.UD | roce.SendOnly
}

func (f form) headerLen(h *wire.Datagram) int {
	if f == roceV2 {
		return (&roce.Header{Opcode: opcodeOf(h)}).Len()
	}
	return wire.DatagramLen
}

// ended is the length of a payload of n bytes with what stands behind it.
func (f form) ended(n uint32) int {
	if f == roceV2 {
		return int(n) + roce.Padding(int(n)) + roce.ICRCLen
	}
	return int(n)
}

// length is that of a message's packet, the UDP header apart.
func (f form) length(h *wire.Datagram, n uint32) int { return f.headerLen(h) + f.ended(n) }

// packet is how long the UDP packet of a message is, as its header room says.
func (p *Port) packet(a *arrival) int { return wire.UDPLen + p.form.length(a.h, uint32(a.length)) }

// put writes the header of a message of n bytes, and its padding.
func (f form) put(b []byte, h *wire.Datagram, n uint32) {
	if f != roceV2 {
		h.Put(b)
		return
	}
	r := roce.Header{Opcode: opcodeOf(h), Solicited: h.Solicited, Migrated: true, Pad: uint8(roce.Padding(int(n))), PKey: roce.DefaultPKey,
		Dst: h.Dst, PSN: roce.PSN(h.PSN), QKey: h.QKey, Src: h.Src, Immediate: h.Immediate}
	pad(b[r.Put(b):], n)
}

// leave sends a packet of n bytes to a queue pair.
func (c *sender) leave(w *way, to wire.QPN, frame []byte, n int, class uint8) {
	c.port.mark(w, class)
	if c.port.form == roceV2 {
		c.pace.left(c.s.clock.Now, n)
		w.path.SetSource(roce.SourcePort(to))
	}
	w.path.Send(frame, n)
}

// mark has packets carry a traffic class, if they are RoCEv2's, and say that routers may mark them.
func (p *Port) mark(w *way, class uint8) {
	if p.form == roceV2 {
		w.path.SetTrafficClass(p.form.class(class))
	}
}

// class is the traffic class of packets whose program wants one.
func (f form) class(wanted uint8) uint8 {
	if f == roceV2 {
		return wanted&^3 | Capable
	}
	return 0
}

// class is that of the message of a work request, if it had a packet.
func (p *Pair) class(wr *qp.SendWR) uint8 { return p.port.form.class(uint8(wr.RKey)) }

// Marked: a router has marked the packet that Message or MessageUC has taken. If its sender is
// to be told, to is his queue pair.
func (p *Port) Marked(h *roce.Header) (to wire.QPN, tell bool) {
	var c *sender
	if uc := p.s.ucs[h.Dst]; uc != nil {
		c, to = &uc.sender, uc.peerQPN
	} else if pair := p.s.pairs[h.Dst]; pair != nil { // no group's
		c, to = &pair.sender, h.Src
	}
	if c == nil || p.s.clock.Now < c.quiet {
		return to, false
	}
	c.quiet = p.s.clock.Now + NoticeEvery
	return to, true
}

// Noticed takes a notice of congestion from an address to which we send; false: it is for
// nobody.
func (p *Port) Noticed(dst wire.QPN, from netip.Addr) bool {
	if uc := p.s.ucs[dst]; uc != nil && uc.port == p && uc.peer == from {
		uc.pace.noticed(p.s.clock.Now)
		return true
	}
	pair := p.s.pairs[dst]
	if pair == nil || pair.port != p || p.ways[from] == nil {
		return false
	}
	pair.pace.noticed(p.s.clock.Now)
	return true
}

func pad(payload []byte, n uint32) { clear(payload[n : int(n)+roce.Padding(int(n))]) }

// Message takes a message to queue pairs of type UD; else it says why not.
func (p *Port) Message(d *netif.Datagram, h *roce.Header, data []byte) (why string) {
	p.s.Stats.Received++
	m := wire.Datagram{Dst: h.Dst, Src: h.Src, QKey: h.QKey, Immediate: h.Immediate, HasImmediate: h.Opcode.Traits().Is(roce.HasImmediate), Solicited: h.Solicited}
	if d.Dst.Addr().IsMulticast() && h.Dst != wire.MulticastQPN {
		p.s.Stats.Malformed++
		return "a message to a group is for one queue pair"
	}
	return p.s.arrived(p, d, &m, data)
}

// putUC writes the header of a packet with n bytes of a message of queue pairs of type UC,
// and its padding, and returns its length.
func (f form) putUC(b []byte, h *wire.UC, n, whole uint32) int {
	if f != roceV2 {
		return h.Put(b)
	}
	op := roce.SendFirst
	if h.Write {
		op = roce.WriteFirst
	}
	switch {
	case h.First && h.Last:
		op += roce.SendOnly
	case h.Last:
		op += roce.SendLast
	case !h.First:
		op += roce.SendMiddle
	}
	if h.Last && h.HasImmediate {
		op++
	}
	r := roce.Header{Opcode: roce.UC | op, Solicited: h.Solicited && h.Last, Migrated: true, Pad: uint8(roce.Padding(int(n))), PKey: roce.DefaultPKey,
		Dst: h.Dst, PSN: roce.PSN(h.PSN), Immediate: h.Immediate, VA: h.TO, RKey: h.STag, Length: whole}
	at := r.Put(b)
	pad(b[at:], n)
	return at
}

// MessageUC takes a packet between queue pairs of type UC; else it says why not.
func (p *Port) MessageUC(d *netif.Datagram, h *roce.Header, data []byte) (why string) {
	s := p.s
	s.Stats.Received++
	to := s.ucs[h.Dst]
	if to == nil || !to.takes(p, d.Src.Addr(), to.peerQPN) {
		s.Stats.NoQueuePair++
		return whyNobody
	}
	in, t, n := &to.in, h.Opcode.Traits(), uint32(len(data))
	u := wire.UC{Dst: h.Dst, Src: to.peerQPN, First: t.Is(roce.First), Last: t.Is(roce.Last), Write: t.Is(roce.Write),
		Immediate: h.Immediate, HasImmediate: t.Is(roce.HasImmediate), Solicited: h.Solicited}
	u.PSN = in.next + wire.PSN(h.PSN.Sub(roce.PSN(in.next&(1<<24-1))))
	if in.late(u.PSN) {
		s.Stats.Late++
		return whyLate
	}
	w, before := in.target, in.length
	if u.First {
		w, before = target{h.RKey, h.VA, h.Length}, 0
	}
	u.STag, u.TO = w.stag, w.to+uint64(before)
	// What does not fit its message makes it torn (InfiniBand vol. 1).
	if mtu := uint32(128) << to.QP.Attr.PathMTU; n > mtu || !u.Last && n != mtu || u.Write && (n > w.length-before || u.Last != (before+n == w.length)) {
		s.Stats.Malformed++
		return "its length is wrong"
	}
	in.target = w
	if !to.take(&u, data) {
		return "the message is torn or refused, or no receive is posted"
	}
	return ""
}
