package qp

import "urdma/urdmad/core/mem"

// This file moves bytes between messages and client memory. A region that was
// deregistered is the client's own again from that moment on: nothing is read
// from it or written to it, whatever still holds its pages.

// Gather copies a work request's bytes from off on into dst. False: memory of the
// work request was deregistered.
func (q *QP) Gather(dst []byte, wr *SendWR, off uint32) bool {
	q.t.spent += len(dst)
	if len(wr.list) == 0 {
		copy(dst, wr.src[min(off, uint32(len(wr.src))):])
		return true
	}
	if wr.stage != nil {
		copy(dst, wr.stage.Bytes(off))
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

// Part returns the longest run of work request i's source at off, at most limit
// bytes; none if it is still being staged. ok is false if that memory was
// deregistered.
func (q *QP) Part(i, off, limit uint32) (b []byte, ok bool) {
	wr := q.SQ.At(i)
	if wr.src != nil {
		return wr.src[off:min(wr.Length, off+limit)], true
	}
	list := wr.list
	if wr.stage != nil {
		if !wr.stage.Need(off) {
			return nil, !anyDead(list)
		}
		b := wr.stage.Bytes(off)
		return b[:min(uint32(len(b)), limit)], !anyDead(list)
	}
	for j := range list {
		if s := &list[j]; off < s.n {
			if s.region.Dead() {
				return nil, false
			}
			return s.bytes[off:min(s.n, off+limit)], true
		}
		off -= list[j].n
	}
	return nil, true
}

// scatter writes data from off on into a work request's scatter list, which has room. False: memory
// of the list was deregistered; nothing more may be written to it.
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

// Store writes data, for which checkRemote has found room, to va of r by
// whichever path the region has.
func (q *QP) Store(r *mem.Region, va uint64, data []byte) {
	q.t.spent += len(data)
	if b := r.Bytes(va, uint64(len(data))); b != nil {
		copy(b, data)
		return
	}
	q.storeFallback(request{}, r, va, data)
}
