package tap

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"urdma/reason"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/fault"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// This file synthesizes the frames that a wire would carry for messages within this engine, when
// their work request completes: datagrams, and for a connection of package samehost the segments of
// every message, of its answer, and Terminate. Nothing is lost, so there are no separate
// acknowledgements; each frame acknowledges everything that the other side has sent. Sequence numbers
// start at 0 and cookies are 0.

// maxShown is the number of bytes of a message that are shown: a turn of the poll loop must not copy
// gigabytes.
const maxShown = 1 << 20

// madeUp is the state of the synthesized frames.
type madeUp struct {
	ends  map[*qp.Connection]*shown
	prune int    // number of ends at which those of past connections are removed
	frame []byte // buffer for one frame
}

// shown is the state of one end of a connection.
type shown struct {
	next    wire.PSN // next PSN of this side
	heard   wire.PSN // next PSN of the other side
	atomics uint32   // number of answered atomics
}

func (m *madeUp) of(c *qp.Connection) *shown {
	if m.ends[c] == nil {
		if len(m.ends) >= m.prune {
			maps.DeleteFunc(m.ends, func(c *qp.Connection, _ *shown) bool { return c.QP == nil })
			m.prune = 2*len(m.ends) + 64
		}
		if m.ends == nil {
			m.ends = map[*qp.Connection]*shown{}
		}
		m.ends[c] = &shown{}
	}
	return m.ends[c]
}

// room returns a buffer for one frame with n bytes of UDP payload, of either family.
func (m *madeUp) room(n int) []byte {
	if size := wire.UDP6HeaderLen + n; len(m.frame) < size {
		m.frame = make([]byte, size)
	}
	return m.frame
}

// Handshake shows a message between two ids of the engine; q is the queue pair that the sender wants to
// connect, or nil.
func (v *Tap) Handshake(m *handshake.Message, q *qp.QP) {
	var offer *wire.TRPExtension
	if q != nil {
		e := v.e.TRP.Offer(m.Dev, q)
		offer = &e
	}
	p := trp.PacketOf(m, offer)
	v.made(Sight{Dev: m.Dev, Our: m.Local, Peer: m.Peer}, 0, func(b []byte) int {
		n, err := p.Put(b)
		if err != nil {
			return 0 // such a packet would not have been sent either
		}
		return n
	})
}

// Fin shows the end of a connection's stream.
func (v *Tap) Fin(c *samehost.Conn) { v.segment(c, wire.OpFin, 0, func([]byte) int { return 0 }) }

// retired shows the message of a send work request that ends, unless its memory is not there any more: a
// program may have truncated its file, and then nothing but a capture accesses it.
func (v *Tap) retired(q *qp.QP, i, status uint32, why reason.Number) {
	fault.Guard(func() { v.message(q, i, status, why) }, nil)
}

func (v *Tap) message(q *qp.QP, i, status uint32, why reason.Number) {
	wr, sent := q.SQ.At(i), status == abi.StatusSuccess
	if wr.Op.RDMAP == abi.NoRDMAP {
		return // a local operation has no message
	}
	switch c := q.Carrier().(type) {
	case *samehost.Conn:
		switch {
		case sent && wr.IsRead():
			v.request(c, i)
			v.answer(c, i)
		case sent:
			v.request(c, i)
		case status != abi.StatusWRFlushErr && why != 0 && (why < 0x0400 || why >= 0x1000): // the cause of a Terminate
			v.refusal(c, i, wire.TermCode(why))
		}
	case *datagram.Pair:
		if h, dst := c.Header(wr); sent && v.within(&c.Connection, dst, h.Dst) {
			v.datagram(c, i, h, dst)
		}
	case *datagram.UC:
		if sent && v.within(&c.Connection, c.Peer.Addr(), c.PeerQPN()) {
			v.parts(c, i)
		}
	}
}

// within reports whether datagrams of a queue pair to another at an address, or to a group, have no
// frame.
func (v *Tap) within(c *qp.Connection, dst netip.Addr, to wire.QPN) bool {
	if dst.IsMulticast() {
		_, out := v.e.Interface(c.Dev).GroupLink(dst)
		return !out
	}
	return v.e.Datagrams.PortAt(dst) != nil && !v.e.QPs.Elsewhere(uint32(to))
}

// memory returns n bytes of a work request's memory. On the fallback path urdmad doesn't have them any
// more: then all of the n bytes are missing, and the frame is shown without them.
func memory(q *qp.QP, i, off, n uint32) (b []byte, missing int) {
	parts, ok := q.Lend(nil, i, off, n)
	if !ok {
		return make([]byte, n), int(n)
	}
	return slices.Concat(parts...), 0
}

// fetch reads the memory from which a Read was answered, if the worker may. It returns false if not.
func (v *Tap) fetch(stag mem.STag, va uint64, b []byte) bool {
	r := v.e.QPs.Regions.Lookup(stag)
	if r == nil || r.Null() || r.Dead() || !r.Contains(va, uint64(len(b))) {
		return false
	}
	if mapped := r.Bytes(va, uint64(len(b))); mapped != nil {
		copy(b, mapped)
		return true
	}
	job := r.Job(va, b)
	return r.Space.Direct() && r.Space.Do(&job) == nil
}

// request shows the segments of a message.
func (v *Tap) request(c *samehost.Conn, i uint32) {
	s, sq := v.segmenter(c), &c.QP.SQ
	wr := sq.At(i)
	build := func(token uint64) func(b []byte) int {
		return func(b []byte) int {
			n, _ := s.BuildRequest(b, token)
			return n
		}
	}
	limit := s.Payload(wr)
	for off, more := uint32(0), true; more && off < maxShown; more = off < wr.Length {
		n, missing := wr.Run(off, limit), 0
		if !wr.IsRead() {
			_, missing = memory(c.QP, i, off, n)
		}
		v.segment(c, wire.OpData, missing, build(rdmap.Token(sq, i, off)))
		off += n
	}
	if wr.Op.Immediate {
		v.segment(c, wire.OpData, 0, build(rdmap.ImmediateToken(sq, i)))
	}
}

// answer shows the answer to a Read or an atomic operation, from the memory to which it was written.
func (v *Tap) answer(c *samehost.Conn, i uint32) {
	wr, from, sink := c.QP.SQ.At(i), c.Other(), rdmap.SinkSTag(c.QP, i)
	if from == nil {
		return
	}
	if wr.Op.Atomic {
		own := v.madeUp.of(&from.Connection)
		own.atomics++
		original, missing := memory(c.QP, i, 0, wr.Length)
		v.segment(from, wire.OpData, missing, func(b []byte) int {
			d := wire.DDP{Last: true, Op: wire.OpAtomicResponse, QN: wire.QueueAtomicResponse, MSN: wire.MSN(own.atomics)}
			r := wire.AtomicResponse{RequestID: uint32(sink), Original: binary.NativeEndian.Uint64(original)}
			at := d.Put(b)
			return at + r.Put(b[at:])
		})
		return
	}
	s := v.segmenter(from)
	for off, more := uint32(0), true; more && off < maxShown; more = off < wr.Length {
		data, missing := memory(c.QP, i, off, min(wr.Length-off, uint32(s.TaggedPayload())))
		if missing > 0 && v.fetch(wr.RKey, wr.RemoteAddr()+uint64(off), data) {
			missing = 0
		}
		d := wire.DDP{Tagged: true, Op: wire.OpReadResponse, STag: sink, TO: uint64(off)}
		off += uint32(len(data))
		d.Last = off == wr.Length
		v.segment(from, wire.OpData, missing, func(b []byte) int {
			at := d.Put(b)
			return at + copy(b[at:], data)
		})
	}
}

// refusal shows the first segment of a refused message, or the immediate data that found no receive,
// and the Terminate.
func (v *Tap) refusal(c *samehost.Conn, i uint32, code wire.TermCode) {
	s, sq := v.segmenter(c), &c.QP.SQ
	token := rdmap.Token(sq, i, 0)
	if sq.At(i).ImmediateNext() {
		token = rdmap.ImmediateToken(sq, i)
	}
	refused := make([]byte, v.e.TRP.Port(c.Dev).MaxSegment())
	n, _ := s.BuildRequest(refused, token)
	refused = refused[:n]
	v.segment(c, wire.OpData, 0, func(b []byte) int { return copy(b, refused) })
	if from := c.Other(); from != nil {
		v.segment(from, wire.OpData, 0, func(b []byte) int { return copy(b, rdmap.RefusalOf(refused, code)) })
	}
}

func (v *Tap) segmenter(c *samehost.Conn) rdmap.Segmenter {
	port := v.e.TRP.Port(c.Dev)
	return rdmap.NewSegmenter(c.QP, port.MaxSegment(), port.WholeLines())
}

// segment shows a frame of c with the segment that build writes.
func (v *Tap) segment(c *samehost.Conn, op wire.TRPOp, missing int, build func(b []byte) int) {
	s := Sight{Dev: c.Dev, Conn: &c.Connection, Our: c.Local, Peer: c.Peer}
	own := v.madeUp.of(s.Conn)
	t := wire.TRP{Op: op, PSN: own.next, Ack: own.heard, Credits: uint32(min(v.e.TRP.Window(), wire.MaxCredits))}
	other := c.Other()
	if other != nil {
		s.Other = &other.Connection
	}
	v.made(s, missing, func(b []byte) int {
		size := build(b[wire.TRPExtLen:])
		if size > 0 {
			own.next = own.next.Add(1)
		}
		return size + t.Put(b)
	})
	if other != nil {
		v.madeUp.of(s.Other).heard = own.next
	}
}

// datagram shows a message of type UD.
func (v *Tap) datagram(c *datagram.Pair, i uint32, h datagram.Message, dst netip.Addr) {
	own := v.madeUp.of(&c.Connection)
	h.PSN, own.next = own.next, own.next.Add(1)
	data, missing := memory(c.QP, i, 0, c.QP.SQ.At(i).Length)
	v.made(v.between(&c.Connection, h.Dst, dst), missing, func(b []byte) int {
		copy(b[trp.Datagrams{}.Put(b, h, uint32(len(data))):], data)
		return trp.Datagrams{}.Len(h, uint32(len(data)))
	})
}

// parts shows the packets of a message of type UC.
func (v *Tap) parts(c *datagram.UC, i uint32) {
	own, wr := v.madeUp.of(&c.Connection), c.QP.SQ.At(i)
	h := c.Header(wr)
	first := h.PSN
	limit := trp.Datagrams{}.PartLen(c.QP, h.Write, v.e.Interface(c.Dev).MaxDatagram())
	for off, more := uint32(0), true; more && off < maxShown; more = off < wr.Length {
		data, missing := memory(c.QP, i, off, min(wr.Length-off, limit))
		h.First, h.TO = off == 0, wr.RemoteAddr()+uint64(off)
		off += uint32(len(data))
		h.Last = off == wr.Length
		h.PSN, own.next = first.Add(uint32(own.next)), own.next.Add(1)
		v.made(v.between(&c.Connection, h.Dst, c.Peer.Addr()), missing, func(b []byte) int {
			at, length := trp.Datagrams{}.PutPart(b, h, uint32(len(data)), wr.Length)
			copy(b[at:], data)
			return length
		})
	}
}

// between describes a packet without a connection from a queue pair to another.
func (v *Tap) between(from *qp.Connection, to wire.QPN, dst netip.Addr) Sight {
	s := Sight{Dev: from.Dev, Conn: from, Our: from.Local, Peer: netip.AddrPortFrom(dst, wire.DatagramPort)}
	if q := v.e.QPs.Pair(uint32(to)); q != nil {
		s.Other = q.Connection()
	}
	return s
}

// made shows a frame whose UDP payload build writes, without its last missing bytes. build returns the
// length of the payload; 0 if there is no such frame.
func (v *Tap) made(s Sight, missing int, build func(b []byte) int) {
	n := v.e.Interface(s.Dev)
	frame := v.madeUp.room(n.MaxDatagram()) // may be IPv6 where the port is IPv4, and then exceeds the MTU
	path := n.FramePath(n.Link(), s.Our, s.Peer)
	size := build(path.Payload(frame))
	if size == 0 {
		return
	}
	s.Local, s.Length = true, path.Put(frame, size)
	s.Frame = frame[:s.Length-missing]
	v.show(s)
}
