package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// element is a checked scatter/gather element: n bytes at va of region. bytes is nil on the
// fallback path.
type element struct {
	region *mem.Region
	va     uint64
	n      uint32
	bytes  []byte
}

// Element is an element of a scatter/gather list.
type Element struct {
	Index        int
	Addr         uint64
	Length, LKey uint32
	PD           uint64 // protection domain of the queue it was posted to
}

func elementOf(index int, e *abi.SGE, pd uint64) Element {
	return Element{Index: index, Addr: e.Addr, Length: e.Length, LKey: e.LKey, PD: pd}
}

// wrongElement returns why a queue pair of protection domain pd may not use a scatter/gather
// element.
func (q *QP) wrongElement(el *abi.SGE, pd uint64) reason.Number {
	switch r := q.Named(mem.STag(el.LKey)); {
	case r == nil:
		return reason.LocalNoRegion
	case r.Of() != nil:
		return reason.LocalWindow
	case r.PD != pd:
		return reason.LocalDomain
	case !r.Contains(el.Addr, uint64(el.Length)):
		return reason.LocalBounds
	}
	return reason.LocalNoRight
}

// hold makes e of a scatter/gather element, if that is valid, and keeps its region's pages mapped.
// It fills e field by field: a copy of a new value would wait until all earlier stores are in the
// cache.
func (q *QP) hold(e *element, el *abi.SGE, pd uint64, want uint32) bool {
	r := q.t.Regions.Lookup(mem.STag(el.LKey))
	if !r.CheckLocal(pd, el.Addr, uint64(el.Length), want) {
		return false
	}
	r.Hold()
	e.region, e.va, e.n = r, el.Addr, el.Length
	e.bytes = r.Bytes(el.Addr, uint64(el.Length))
	return true
}
