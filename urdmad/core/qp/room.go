package qp

import (
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file lends client memory to carriers that have the kernel move the bytes: a
// stream socket is read straight to where a message goes, and written from where it
// comes. The memory is lent until the call returns. A message must have begun by the
// steps of arrive.go, which have checked all of it; what SendRoom and its like have
// lent and the kernel has filled is noted by Filled.

// SendRoom appends to vec where the next bytes of the message under way go, at most n:
// fewer, or none, where urdmad does not map the memory.
func (q *QP) SendRoom(vec [][]byte, n uint32) [][]byte {
	return lend(vec, q.Recv.sges[:q.Recv.nsge], q.Recv.got, n)
}

// SendFilled notes that n bytes of what SendRoom lent were filled.
func (q *QP) SendFilled(n uint32) {
	q.Recv.got += n
	q.placed(abi.WCRecv, q.Recv.id, n)
}

// WriteRoom is SendRoom for a Write to va of the region stag, of which PlaceWrite has
// placed the bytes before.
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

// WriteFilled notes that n bytes of what WriteRoom lent, from va on, were filled.
func (q *QP) WriteFilled(va uint64, n uint32) {
	q.Stats.BytesRecv += uint64(n)
	q.placed(abi.WCRDMAWrite, va, n)
}

// ResponseRoom is SendRoom for the answer to the Read at index i.
func (q *QP) ResponseRoom(vec [][]byte, i, n uint32) [][]byte {
	wr := q.AwaitsAnswer(i, false)
	if wr == nil {
		return vec // its slot may be another's
	}
	return lend(vec, wr.list, wr.got, n)
}

// ResponseFilled notes that n bytes of what ResponseRoom lent were filled.
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

// Lend appends to vec work request i's n bytes from off on, which Run has said are
// there. ok is false if their memory was deregistered. The memory is lent until
// the work request completes; SourceDead says whether it may still be read.
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
