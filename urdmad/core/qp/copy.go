package qp

import "urdma/urdmad/core/mem"

// This file copies bytes between messages and client memory. A deregistered region belongs to the
// client alone: from that moment urdmad neither reads nor writes it, even if something still
// keeps its pages mapped.

// Gather copies a work request's bytes, starting at offset off, into dst. It returns false if
// memory of the work request was deregistered.
func (q *QP) Gather(dst []byte, wr *SendWR, off uint32) bool {
	q.t.spent += len(dst)
	if len(wr.list) == 0 {
		copy(dst, wr.src[min(off, uint32(len(wr.src))):])
		return true
	}
	if wr.ahead != nil {
		copy(dst, wr.ahead.Bytes(off))
		return !anyDead(wr.list)
	}
	for j := range wr.list {
		s := &wr.list[j]
		if off >= s.n {
			off -= s.n
			continue
		}
		if s.region.Dead() {
			return false
		}
		dst = dst[copy(dst, s.bytes[off:]):]
		if len(dst) == 0 {
			break
		}
		off = 0
	}
	return true
}

// SourceDead reports whether memory that work request i reads from was deregistered.
func (q *QP) SourceDead(i uint32) bool { return anyDead(q.SQ.At(i).list) }

func anyDead(list []element) bool {
	for i := range list {
		if list[i].region.Dead() {
			return true
		}
	}
	return false
}

// Part returns the longest contiguous run of work request i's source at offset off, of at most
// limit bytes. It is empty if the bytes have not been read ahead yet, or belong to a destination on
// the fallback path. ok is false if the memory was deregistered.
func (q *QP) Part(i, off, limit uint32) (b []byte, ok bool) {
	wr := q.SQ.At(i)
	if wr.src != nil {
		return wr.src[off:min(wr.Length, off+limit)], true
	}
	list := wr.list
	if wr.ahead != nil {
		if !wr.ahead.Need(off) {
			return nil, !anyDead(list)
		}
		b := wr.ahead.Bytes(off)
		return b[:min(uint32(len(b)), limit)], !anyDead(list)
	}
	for j := range list {
		if s := &list[j]; off < s.n {
			if s.region.Dead() {
				return nil, false
			}
			size := uint32(len(s.bytes)) // 0 on the fallback path
			return s.bytes[min(off, size):min(size, off+limit)], true
		}
		off -= list[j].n
	}
	return nil, true
}

// scatter writes data into a work request's scatter list, starting at offset off. The caller has
// checked that it fits. It returns false if memory of the list was deregistered or is missing; then
// nothing more may be written to it.
func (q *QP) scatter(of request, list []element, off uint32, data []byte) bool {
	q.t.spent += len(data)
	for i := range list {
		s := &list[i]
		if off >= s.n {
			off -= s.n
			continue
		}
		if s.region.Dead() && len(data) > 0 {
			return false
		}
		n := min(len(data), int(s.n-off))
		switch {
		case s.region.Null():
		case s.region.Missing(s.va+uint64(off), uint64(n), true):
			return false
		case s.bytes != nil:
			copy(s.bytes[off:], data[:n])
		default:
			q.storeFallback(of, s.region, s.va+uint64(off), data[:n])
		}
		if data = data[n:]; len(data) == 0 {
			return true
		}
		off = 0
	}
	return true
}

// Store writes data to address va of region r, by mapping or on the fallback path. checkRemote
// has checked the range.
func (q *QP) Store(r *mem.Region, va uint64, data []byte) {
	q.t.spent += len(data)
	if b := r.Bytes(va, uint64(len(data))); b != nil {
		copy(b, data)
		return
	}
	q.storeFallback(request{}, r, va, data)
}
