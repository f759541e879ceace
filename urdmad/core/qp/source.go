package qp

import "urdma/urdmad/core/mem"

// Source supplies the bytes for the answer to a peer's Read. It holds the region until Release.
type Source struct {
	q      *QP         // the queue pair that answers; nil for a Read of 0 bytes
	after  uint64      // number of the last write that must end first
	region *mem.Region // nil for a Read of 0 bytes
	mapped []byte      // the bytes; nil on the fallback path
	ahead  *ReadAhead  // on the fallback path; else nil
	length uint32
}

// BeginRead checks a peer's Read of length bytes at va of the region stag. The queue pair to is
// put in line when bytes have been read on the fallback path. The budget of to's client pays for
// them; if to is an XRC target queue pair, the budget of the client that owns the memory.
func (q *QP) BeginRead(stag mem.STag, va uint64, length uint32, to *QP) (s Source, v Verdict) {
	q.t.heardFrom(q)
	if by := q.Client.Interceptor; by != nil {
		if v := by.Message(q, MessageRead, nil); v.Is != Done {
			return Source{}, v
		}
	}
	if length == 0 {
		return Source{}, Verdict{}
	}
	r := q.t.Regions.Lookup(stag)
	why := q.checkRemote(r, va, uint64(length), mem.RemoteRead)
	if why == mem.Allowed && r.Missing(va, uint64(min(length, readAheadChunk)), false) {
		why = mem.Unmapped
	}
	if why != mem.Allowed {
		return Source{}, q.deny(why, stag, va, uint64(length), mem.RemoteRead)
	}
	r.Hold()
	s = Source{q: q, after: q.jobs.issued, region: r, mapped: r.Bytes(va, uint64(length)), length: length}
	if s.mapped == nil {
		s.ahead = newReadAhead(to, to.Owner(r), request{}, length, []element{{region: r, va: va, n: length}})
		s.ahead.of.read = s.ahead
	}
	return s, Verdict{}
}

// Available reports whether the byte at off can be read now. If not, it requests the byte.
func (s *Source) Available(off uint32) bool {
	if s.q != nil && !s.q.jobs.written(s.after) {
		return false
	}
	return s.ahead == nil || s.ahead.Need(off)
}

// Run returns how many bytes starting at off, at most limit, Bytes returns in one piece.
func (s *Source) Run(off, limit uint32) uint32 {
	if s.ahead != nil {
		return s.ahead.Run(off, limit)
	}
	return min(limit, s.length-off)
}

// Bytes returns the bytes from off on, at least as many as Run returns.
func (s *Source) Bytes(off uint32) []byte {
	if s.ahead != nil {
		return s.ahead.Bytes(off)
	}
	return s.mapped[off:]
}

// Revoked reports whether the region was deregistered or cannot be accessed; then it must not be read.
func (s *Source) Revoked() bool {
	return s.region != nil && s.region.Dead() || s.ahead != nil && s.ahead.lost
}

// Sent records that all bytes before off were sent, the last of them with this mark.
func (s *Source) Sent(off uint32, mark uint64) {
	if s.ahead != nil {
		s.ahead.Sent(off, mark)
	}
}

// Acked frees the bytes that the peer has acknowledged, up to mark.
func (s *Source) Acked(mark uint64) {
	if s.ahead != nil {
		s.ahead.Acked(mark)
	}
}

// Release frees everything.
func (s *Source) Release() {
	if s.ahead != nil {
		s.ahead.Drop()
	}
	if s.region != nil {
		s.region.Release()
	}
	*s = Source{}
}
