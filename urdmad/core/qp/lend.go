package qp

import (
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file lends client memory to carriers for which the kernel copies the bytes: a stream
// socket reads directly into a message's destination and writes directly from its source. The
// memory is lent until the call returns. Before, the steps of arrive.go must have begun the
// message and checked all of it. After the kernel has filled the memory that SendRoom, WriteRoom
// or ResponseRoom lent, the carrier calls the matching Filled method.

// SendRoom appends to vec the destination of the next n bytes of the current message. It lends
// less, or nothing, if urdmad does not map the memory.
func (q *QP) SendRoom(vec [][]byte, n uint32) [][]byte {
	return lend(vec, q.Recv.sges[:q.Recv.nsge], q.Recv.got, n)
}

// SendFilled records that n bytes of the memory from SendRoom were filled.
func (q *QP) SendFilled(n uint32) {
	q.Recv.got += n
	q.placed(abi.WCRecv, q.Recv.id, n)
}

// WriteRoom is SendRoom for a Write to va of the region stag. PlaceWrite must have placed the
// earlier bytes.
func (q *QP) WriteRoom(vec [][]byte, stag mem.STag, va uint64, n uint32) [][]byte {
	r := q.t.Regions.Lookup(stag)
	if r == nil || r.Null() || q.checkRemote(r, va, uint64(n), mem.RemoteWrite) != mem.Allowed {
		return vec
	}
	if b := r.Bytes(va, uint64(n)); b != nil {
		vec = append(vec, b)
	}
	return vec
}

// WriteFilled records that n bytes of the memory from WriteRoom, starting at va, were filled.
func (q *QP) WriteFilled(va uint64, n uint32) {
	q.Stats.BytesRecv += uint64(n)
	q.placed(abi.WCRDMAWrite, va, n)
}

// ResponseRoom is SendRoom for the answer to the Read at index i.
func (q *QP) ResponseRoom(vec [][]byte, i, n uint32) [][]byte {
	wr := q.AwaitsAnswer(i, false)
	if wr == nil {
		return vec // another work request may have its slot
	}
	return lend(vec, wr.list, wr.got, n)
}

// ResponseFilled records that n bytes of the memory from ResponseRoom were filled.
func (q *QP) ResponseFilled(i, n uint32) {
	wr := q.SQ.At(i)
	wr.got += n
	q.Stats.BytesRecv += uint64(n)
	q.placed(wr.Op.Completion, wr.id, n)
}

func lend(vec [][]byte, list []element, off, n uint32) [][]byte {
	for i := range list {
		s := &list[i]
		if off >= s.n {
			off -= s.n
			continue
		}
		if n == 0 || s.bytes == nil || s.region.Null() || s.region.Dead() {
			break
		}
		part := s.bytes[off:min(s.n, off+n)]
		vec = append(vec, part)
		n -= uint32(len(part))
		off = 0
	}
	return vec
}

// Lend appends to vec n bytes of work request i, starting at off. Run must have reported them
// available. ok is false if their memory was deregistered. The memory is lent until the work
// request completes; SourceDead reports whether it may still be read.
func (q *QP) Lend(vec [][]byte, i, off, n uint32) (_ [][]byte, ok bool) {
	for n > 0 {
		b, ok := q.Part(i, off, n)
		if !ok || len(b) == 0 {
			return vec, false
		}
		vec = append(vec, b)
		off, n = off+uint32(len(b)), n-uint32(len(b))
	}
	return vec, !q.SourceDead(i)
}
