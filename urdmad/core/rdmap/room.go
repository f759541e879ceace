package rdmap

import (
	"urdma/urdmad/core/mem"
	"urdma/wire"
)

// Room appends to vec the memory for the next bytes of a segment, at most n, whose earlier pieces were
// delivered; d is the header of the next piece. It appends nothing for messages that must be complete
// first, and for memory that urdmad does not map.
func (s *Stream) Room(vec [][]byte, d *wire.DDP, n int) [][]byte {
	switch q := s.QP; d.Op {
	case wire.OpWrite:
		return q.WriteRoom(vec, mem.STag(d.STag), d.TO, uint32(n))
	case wire.OpSend, wire.OpSendInv, wire.OpSendSE, wire.OpSendSEInv:
		return q.SendRoom(vec, uint32(n))
	case wire.OpReadResponse:
		return q.ResponseRoom(vec, readIndex(q, d.STag), uint32(n))
	}
	return vec
}

// Filled records that n bytes of memory from Room were filled.
func (s *Stream) Filled(d *wire.DDP, n int) {
	switch q := s.QP; d.Op {
	case wire.OpWrite:
		s.written.add(n, false)
		q.WriteFilled(d.TO, uint32(n))
	case wire.OpReadResponse:
		q.ResponseFilled(readIndex(q, d.STag), uint32(n))
	default:
		q.SendFilled(uint32(n))
	}
}

// InPieces reports whether a segment may be delivered in pieces.
func InPieces(d *wire.DDP) bool {
	return d.Tagged || d.Op.TakesReceive() && d.Op != wire.OpImmediate && d.Op != wire.OpImmediateSE
}
