package qp

import "urdma/urdmad/core/mem"

// Refusal is what urdmads tell each other of why a message was refused, beside the cause in
// their protocol's terms. It has no address, and nothing of memory that the peer did not
// name: programs of other users may read it.
type Refusal struct {
	Kind  RefusalKind
	Value uint32 // as the kind says
}

// RefusalKind is what is told. Numbers are those on the wire (docs/WIRE.md chapter 6).
type RefusalKind uint16

const (
	RefusalRegion       RefusalKind = 1 // value: the rights of the region or window, enum ibv_access_flags
	RefusalPair         RefusalKind = 2 // value: qp_access_flags
	RefusalRoom         RefusalKind = 3 // value: bytes that the receive has room for
	RefusalReceive      RefusalKind = 4 // the receive was wrong; value: its reason
	RefusalDeregistered RefusalKind = 5 // the key has named a region until a moment ago
	RefusalGiven        RefusalKind = 6 // nothing is wrong with the message; value: the reason
)

// Refusal is what the peer of the queue pair, whose message was refused, is told.
func (q *QP) Refusal() Refusal {
	f := &q.found
	switch {
	case f.Given != 0:
		return Refusal{RefusalGiven, uint32(f.Given)}
	case f.Is == TooLong:
		return Refusal{RefusalRoom, f.Room}
	case f.Is == BadReceive:
		return Refusal{RefusalReceive, uint32(f.Local)}
	case f.Is != Denied:
		return Refusal{}
	}
	r := q.Named(f.STag)
	switch {
	case r == nil:
		if _, ok := q.Gone(f.STag); ok {
			return Refusal{Kind: RefusalDeregistered}
		}
	case f.Why == mem.NoRight && f.Want != 0 && r.Allows(f.Want):
		return Refusal{RefusalPair, q.Attr.QPAccessFlags}
	case f.Why == mem.NoRight && f.Want != 0:
		return Refusal{RefusalRegion, r.Access}
	}
	return Refusal{}
}

// PeerRefused takes what the peer has told of why it refuses the oldest send.
func (q *QP) PeerRefused(t Refusal) { q.found = Found{Refusal: t} }
