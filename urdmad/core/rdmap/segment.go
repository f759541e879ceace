package rdmap

import (
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Segmenter divides the messages of a queue pair into DDP segments.
type Segmenter struct {
	QP      *qp.QP
	payload [2]uint32 // bytes of payload in an untagged and in a tagged segment
}

// NewSegmenter makes segments of at most maxSegment bytes. If lines is set, payloads are rounded down to
// whole cache lines, so that all segments of a message have the same alignment for copies.
func NewSegmenter(q *qp.QP, maxSegment int, lines bool) Segmenter {
	s := Segmenter{QP: q}
	for i, head := range [2]int{wire.UntaggedLen, wire.TaggedLen} {
		room := uint32(maxSegment - head)
		if lines && room > 256 {
			room &^= 63
		}
		s.payload[i] = room
	}
	return s
}

// TaggedPayload returns how many bytes of payload a tagged segment has.
func (s *Segmenter) TaggedPayload() int { return int(s.payload[1]) }

// Payload returns how many bytes of a work request each of its segments carries. A Read Request is one
// segment, whatever the Read's length.
func (s *Segmenter) Payload(wr *qp.SendWR) uint32 {
	switch wire.Opcode(wr.Op.RDMAP) {
	case wire.OpWrite:
		return s.payload[1]
	case wire.OpReadRequest, wire.OpAtomicRequest:
		return ^uint32(0)
	}
	return s.payload[0]
}

// A token identifies a segment: a slot of the send queue or of the answers, and the offset of the segment's
// first byte or a flag for the work request's immediate data.
const (
	tokenAnswer    = uint64(1) << 63
	tokenImmediate = uint64(1) << 62

	tokenSlotAt   = 32
	tokenSlotMask = 1<<24 - 1
)

func makeToken(slot, off uint32) uint64 { return uint64(slot&tokenSlotMask)<<tokenSlotAt | uint64(off) }
func tokenSlot(token uint64) uint32     { return uint32(token>>tokenSlotAt) & tokenSlotMask }

// Token returns the token of the segment that begins at off, of the work request at index i.
func Token(sq *qp.SendQueue, i, off uint32) uint64 { return makeToken(i&uint32(sq.Slots()-1), off) }

// ImmediateToken returns the token of the immediate data of the work request at index i.
func ImmediateToken(sq *qp.SendQueue, i uint32) uint64 { return Token(sq, i, 0) | tokenImmediate }

// Build writes the segment with the token into b and returns its length. ok is false if its memory was
// deregistered; then call Revoked.
func (s *Stream) Build(b []byte, token uint64) (n int, ok bool) {
	if token&tokenAnswer == 0 {
		return s.BuildRequest(b, token)
	}
	v, off := s.answers.at(tokenSlot(token)), uint32(token)
	if v.atomic != nil {
		return v.atomic.build(b), true
	}
	data, ok := s.answerData(v, off)
	if !ok {
		return 0, false
	}
	at := answerHead(b, &v.req, off, len(data))
	return at + copy(b[at:], data), true
}

// answerData returns the payload of the segment that begins at off of an answer; ok is false if its memory
// was deregistered.
func (s *Segmenter) answerData(v *answer, off uint32) (data []byte, ok bool) {
	if v.source.Revoked() {
		return nil, false
	}
	if n := v.source.Run(off, s.payload[1]); n > 0 {
		data = v.source.Bytes(off)[:n]
	}
	return data, true
}

// Compose writes the segment with the token into b, except the payload of a Send, Write or Read Response,
// whose memory it appends to vec, for carriers that let the kernel gather it. It returns how many bytes it
// wrote; ok is the same as for Build.
func (s *Stream) Compose(b []byte, vec [][]byte, token uint64) (at int, _ [][]byte, ok bool) {
	slot, off := tokenSlot(token), uint32(token)
	if token&tokenAnswer != 0 {
		v := s.answers.at(slot)
		if v.atomic != nil {
			return v.atomic.build(b), vec, true
		}
		data, ok := s.answerData(v, off)
		if !ok {
			return 0, vec, false
		}
		if len(data) > 0 {
			vec = append(vec, data)
		}
		return answerHead(b, &v.req, off, len(data)), vec, true
	}
	at, n := s.head(b, token, s.QP.SQ.At(slot))
	vec, ok = s.QP.Lend(vec, slot, off, n)
	return at, vec, ok
}

// Dead reports whether the memory of the segment with the token was deregistered.
func (s *Stream) Dead(token uint64) bool {
	if slot := tokenSlot(token); token&tokenAnswer == 0 {
		return s.QP.SourceDead(slot)
	} else if v := s.answers.at(slot); v.atomic == nil {
		return v.source.Revoked()
	}
	return false
}

// BuildRequest writes the segment of a work request that has the token.
func (s *Segmenter) BuildRequest(b []byte, token uint64) (n int, ok bool) {
	wr := s.QP.SQ.At(tokenSlot(token))
	at, size := s.head(b, token, wr)
	n = at + int(size)
	return n, size == 0 || s.QP.Gather(b[at:n], wr, uint32(token))
}

// head writes the header of a segment of work request wr, and returns the length of its payload.
func (s *Segmenter) head(b []byte, token uint64, wr *qp.SendWR) (at int, payload uint32) {
	slot, off := tokenSlot(token), uint32(token)
	if token&tokenImmediate != 0 {
		return buildImmediate(b, s.QP, wr), 0
	}
	switch wire.Opcode(wr.Op.RDMAP) {
	case wire.OpWrite:
		return s.headWrite(b, wr, off)
	case wire.OpReadRequest:
		return s.buildReadRequest(b, slot, wr), 0
	case wire.OpAtomicRequest:
		return s.buildAtomicRequest(b, slot, wr), 0
	}
	return s.headSend(b, wr, off)
}

func (s *Segmenter) headWrite(b []byte, wr *qp.SendWR, off uint32) (at int, n uint32) {
	n = wr.Run(off, s.payload[1])
	var d wire.DDP
	d.Tagged, d.Last, d.Op = true, off+n == wr.Length, wire.OpWrite
	d.STag, d.TO = wire.STag(wr.RKey), wr.RemoteAddr()+uint64(off)
	return d.Put(b), n
}

func (s *Segmenter) headSend(b []byte, wr *qp.SendWR, off uint32) (at int, n uint32) {
	n = wr.Run(off, s.payload[0])
	var d wire.DDP
	d.Last, d.Op = off+n == wr.Length && !wr.Op.Immediate, sendOpcode(wr)
	d.QN, d.MSN, d.MO = wire.QueueSend, wire.MSN(wr.MSN), off
	if d.Op.Invalidates() || s.QP.Type == abi.QPTypeXRCSend {
		d.STag = wire.STag(wr.STag)
	}
	return d.Put(b), n
}

func sendOpcode(wr *qp.SendWR) wire.Opcode {
	op := wire.Opcode(wr.Op.RDMAP)
	if wr.Flags&abi.SendSolicited != 0 {
		op += wire.OpSendSE - wire.OpSend
	}
	return op
}

func (s *Segmenter) buildReadRequest(b []byte, slot uint32, wr *qp.SendWR) int {
	d := wire.DDP{Last: true, Op: wire.OpReadRequest, QN: wire.QueueReadRequest, MSN: wire.MSN(wr.MSN)}
	at := d.Put(b)
	r := wire.ReadRequest{SinkSTag: SinkSTag(s.QP, s.QP.SQ.Index(slot)), Length: wr.Length, SrcSTag: wire.STag(wr.RKey),
		SrcTO: wr.RemoteAddr()}
	return at + r.Put(b[at:])
}

// answerHead writes the header of a segment of the answer to req. The segment begins at off and carries n
// bytes.
func answerHead(b []byte, req *wire.ReadRequest, off uint32, n int) int {
	var d wire.DDP
	d.Tagged, d.Last, d.Op = true, off+uint32(n) == req.Length, wire.OpReadResponse
	d.STag, d.TO = req.SinkSTag, req.SinkTO+uint64(off)
	return d.Put(b)
}

// SinkSTag returns the sink STag of the Read at an index of a queue pair's send queue. A peer can answer only
// Reads that were requested, and the scatter list may have any number of elements.
func SinkSTag(q *qp.QP, index uint32) wire.STag { return wire.STag(index ^ q.QPN<<8) }
func readIndex(q *qp.QP, sink wire.STag) uint32 { return uint32(sink) ^ q.QPN<<8 }
