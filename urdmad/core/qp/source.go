package qp

import "urdma/urdmad/core/mem"

// Source is what a Read of the peer's is answered from. Its region is held until
// Release.
type Source struct {
	q      *QP         // whose peer reads; nil for a Read of 0 bytes
	after  uint64      // its writes that come first
	region *mem.Region // nil for a Read of 0 bytes
	mapped []byte      // all of it; nil on the fallback path
	stage  *Stage      // there; else nil
	length uint32
}

// BeginRead checks a Read of the peer's: length bytes at va of the region stag. to is
// put in line when bytes come that are read on the fallback path. Its client's budget
// pays for them, or by a target queue pair that of the client whose memory it is.
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
	if why := q.checkRemote(r, va, uint64(length), mem.RemoteRead); why != mem.Allowed {
		return Source{}, q.deny(why, stag, va, uint64(length), mem.RemoteRead)
	}
	r.Hold()
	s = Source{q: q, after: q.jobs.issued, region: r, mapped: r.Bytes(va, uint64(length)), length: length}
	if s.mapped == nil {
		s.stage = newStage(to, to.Owner(r), request{}, length, []element{{region: r, va: va, n: length}})
	}
	return s, Verdict{}
}

// Here reports whether the byte at off can be read now, and sees to it that it can be
// soon.
func (s *Source) Here(off uint32) bool {
	if s.q != nil && !s.q.jobs.written(s.after) {
		return false
	}
	return s.stage == nil || s.stage.Need(off)
}

// Run is how many of the bytes from off on, at most limit, are read in one piece.
func (s *Source) Run(off, limit uint32) uint32 {
	if s.stage != nil {
		return s.stage.Run(off, limit)
	}
	return min(limit, s.length-off)
}

// Bytes are those from off on, as many as Run says or more.
func (s *Source) Bytes(off uint32) []byte {
	if s.stage != nil {
		return s.stage.Bytes(off)
	}
	return s.mapped[off:]
}

// Revoked reports whether the region was deregistered: it is its client's own again.
func (s *Source) Revoked() bool { return s.region != nil && s.region.Dead() }

// Sent notes that all before off went out, the last of it with a mark.
func (s *Source) Sent(off uint32, mark uint64) {
	if s.stage != nil {
		s.stage.Sent(off, mark)
	}
}

// Acked lets go of what the peer has, up to a mark.
func (s *Source) Acked(mark uint64) {
	if s.stage != nil {
		s.stage.Acked(mark)
	}
}

// Release lets go of all of it.
func (s *Source) Release() {
	if s.stage != nil {
		s.stage.Drop()
	}
	if s.region != nil {
		s.region.Release()
	}
	*s = Source{}
}
