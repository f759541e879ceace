package roce

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
	"urdma/wire/roce"
)

// datagrams is the format of messages of queue pairs of types UD and UC in RoCEv2; it implements
// datagram.Form.
type datagrams struct{}

// Port implements datagram.Form.
func (datagrams) Port() uint16 { return roce.Port }

// Len implements datagram.Form.
func (datagrams) Len(m datagram.Message, n uint32) int {
	return (&roce.Header{Opcode: opcode(&m)}).Len() + ended(n)
}

func opcode(m *datagram.Message) roce.Opcode {
	if m.HasImmediate {
		return roce.UD | roce.SendOnlyImmediate
	}
	return roce.UD | roce.SendOnly
}

// ended returns the length of a payload of n bytes with its padding and CRC.
func ended(n uint32) int { return int(n) + roce.Padding(int(n)) + roce.ICRCLen }

func pad(payload []byte, n uint32) { clear(payload[n : int(n)+roce.Padding(int(n))]) }

// Put implements datagram.Form.
func (datagrams) Put(b []byte, m datagram.Message, n uint32) (at int) {
	h := roce.Header{Opcode: opcode(&m), Solicited: m.Solicited, Migrated: true, Pad: uint8(roce.Padding(int(n))),
		PKey: roce.DefaultPKey, Dst: m.Dst, PSN: roce.PSN(m.PSN), QKey: m.QKey, Src: m.Src, Immediate: m.Immediate}
	at = h.Put(b)
	pad(b[at:], n)
	return at
}

// PartLen implements datagram.Form.
func (datagrams) PartLen(q *qp.QP, _ bool, _ int) uint32 { return pathMTU(q) }

// pathMTU returns how many bytes of a message each packet except the last carries.
func pathMTU(q *qp.QP) uint32 { return 128 << q.Attr.PathMTU } // Attr.PathMTU is an enum ibv_mtu

// PutPart implements datagram.Form.
func (datagrams) PutPart(b []byte, p datagram.Part, n, whole uint32) (at, length int) {
	op := roce.SendFirst
	if p.Write {
		op = roce.WriteFirst
	}
	switch {
	case p.First && p.Last:
		op += roce.SendOnly
	case p.Last:
		op += roce.SendLast
	case !p.First:
		op += roce.SendMiddle
	}
	if p.Last && p.HasImmediate {
		op++
	}
	h := roce.Header{Opcode: roce.UC | op, Solicited: p.Solicited && p.Last, Migrated: true,
		Pad: uint8(roce.Padding(int(n))), PKey: roce.DefaultPKey, Dst: p.Dst, PSN: roce.PSN(p.PSN),
		Immediate: p.Immediate, VA: p.TO, RKey: p.STag, Length: whole}
	at = h.Put(b)
	pad(b[at:], n)
	return at, at + ended(n)
}

// NewFlow implements datagram.Form.
func (datagrams) NewFlow() datagram.Flow { return &flow{} }

// flow is the state of a queue pair of type UD or UC; it implements datagram.Flow.
type flow struct {
	pace
	target target
	noted  clock.Time // the next CNP to the peer is not sent earlier
}

// target is the destination of the Write in progress, which is stated only in its first packet.
type target struct {
	stag   wire.STag
	to     uint64
	length uint32 // of the whole Write
}

// Class implements datagram.Flow: it lets routers mark the packets.
func (*flow) Class(wanted uint8) uint8 { return wanted&^3 | capable }

// Holds implements datagram.Flow.
func (f *flow) Holds(now clock.Time) (until clock.Time, ok bool) { return f.holds(now) }

// Leaves implements datagram.Flow.
func (f *flow) Leaves(now clock.Time, path *netif.Path, to wire.QPN, n int, class uint8) {
	path.SetTrafficClass(f.Class(class))
	path.SetSource(roce.SourcePort(to))
	f.left(now, n)
}

// message handles a message for a queue pair of type UD. It returns false if it drops the message.
func (p *Port) message(d *netif.Datagram, data []byte) bool {
	h := &p.head
	if d.Dst.Addr().IsMulticast() && h.Dst != wire.MulticastQPN {
		s := p.datagrams.Stats()
		s.Received++
		s.Malformed++
		return false // a message to a group is for one queue pair
	}
	return p.datagrams.Arrived(d, datagram.Message{Dst: h.Dst, Src: h.Src, QKey: h.QKey, Immediate: h.Immediate,
		HasImmediate: h.Opcode.Traits().Is(roce.HasImmediate), Solicited: h.Solicited}, p.If.Class(d), data)
}

// part handles a packet for a queue pair of type UC. It returns false if it drops the packet.
func (p *Port) part(d *netif.Datagram, data []byte) bool {
	h := &p.head
	to := p.datagrams.UC(h.Dst, d.Src.Addr(), datagram.Unstated)
	if to == nil {
		return false
	}
	next, before := to.Expected()
	psn := next + wire.PSN(h.PSN.Sub(roce.PSN(next&(1<<24-1))))
	if to.Late(psn) {
		return false
	}
	at, t, n := &to.Flow().(*flow).target, h.Opcode.Traits(), uint32(len(data))
	target := *at
	if t.Is(roce.First) {
		target.stag, target.to, target.length, before = h.RKey, h.VA, h.Length, 0
	}
	// A packet that does not fit its message invalidates the message (InfiniBand vol. 1).
	last, write := t.Is(roce.Last), t.Is(roce.Write)
	mtu, rest := pathMTU(to.QP), target.length-before
	if n > mtu || !last && n != mtu || write && (n > rest || last != (n == rest)) {
		p.datagrams.Stats().Malformed++
		return false // its length is wrong
	}
	*at = target
	return to.Take(&datagram.Part{PSN: psn, Dst: h.Dst, Src: to.PeerQPN(), First: t.Is(roce.First), Last: last,
		Write: write, STag: target.stag, TO: target.to + uint64(before), Immediate: h.Immediate,
		HasImmediate: t.Is(roce.HasImmediate), Solicited: h.Solicited}, data)
}
