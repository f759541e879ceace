package fabric

// Of MultiPathRecord: what a path is to be like stands as in PathRecord, bytes and bits of the mask; then the numbers of
// sources and destinations, whose GIDs follow.
const (
	attrMultiPath = 0x3a

	multiPathLike                 = 13 // bytes
	multiPathLikeBits             = 16
	pathLike, pathLikeBit         = 44, 6 // their places in PathRecord
	offSGIDCount                  = 15
	offMultiGIDs                  = 24
	maxMultiGIDs                  = 11
	multiSGIDs, multiDGIDs        = 19, 20 // components
	multiComponents               = 22
	multiNeeds             uint64 = 1<<multiSGIDs | 1<<multiDGIDs
)

// multiPath answers GetMulti(MultiPathRecord) with the paths from each source to each destination. None is independent
// of another more than by chance, as there is one for each pair.
func (s *Subnet) multiPath(m MAD) MAD {
	b := m[adminData:Size]
	sources, all := int(b[offSGIDCount]), int(b[offSGIDCount])+int(b[offSGIDCount+1])
	switch {
	case m.mask()>>multiComponents != 0, all > maxMultiGIDs:
		return m.answer(statusInvalidRequest)
	case m.mask()&multiNeeds != multiNeeds, sources == 0, all == sources:
		return m.answer(statusTooFewComponents)
	}
	ends := make([]*endpoint, all)
	for i := range ends {
		if ends[i] = s.byGID([16]byte(b[offMultiGIDs+16*i:])); ends[i] == nil {
			return m.answer(statusInvalidGID)
		}
	}
	kind := records[attrPathRecord]
	q := &query{kind: kind, mask: m.mask() & (1<<multiPathLikeBits - 1) << pathLikeBit, want: make([]byte, kind.size)}
	copy(q.want[pathLike:], b[:multiPathLike])
	for _, from := range ends[:sources] {
		for _, to := range ends[sources:] {
			if s.reaches(from, to) && s.reaches(to, from) {
				q.add(pathRecord(from, to))
			}
		}
	}
	return q.table(m)
}
