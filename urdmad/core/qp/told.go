package qp

import "urdma/urdmad/core/mem"

// Told is what urdmads tell each other of why a message was refused, beside the cause in
// their protocol's terms. It has no address, and nothing of memory that the peer did not
// name: programs of other users may read it.
type Told struct {
	Kind  ToldKind
	Value uint32 // as the kind says
}

// ToldKind is what is told. Numbers are those on the wire (docs/WIRE.md chapter 6).
type ToldKind uint16

const (
	ToldRegion       ToldKind = 1 // value: the rights of the region or window, enum ibv_access_flags
	ToldPair         ToldKind = 2 // value: qp_access_flags
	ToldRoom         ToldKind = 3 // value: bytes that the receive has room for
	ToldReceive      ToldKind = 4 // the receive was wrong; value: its reason
	ToldDeregistered ToldKind = 5 // the key has named a region until a moment ago
	ToldGiven        ToldKind = 6 // nothing is wrong with the message; value: the reason
)

// Told is what the peer of the queue pair, whose message was refused, is told.
func (q *QP) Told() Told {
	f := &q.found
	switch {
	case f.Given != 0:
		return Told{ToldGiven, uint32(f.Given)}
	case f.Is == TooLong:
		return Told{ToldRoom, f.Room}
	case f.Is == BadReceive:
		return Told{ToldReceive, uint32(f.Local)}
	case f.Is != Denied:
		return Told{}
	}
	r := q.Named(f.STag)
	switch {
	case r == nil:
		if _, ok := q.Gone(f.STag); ok {
			return Told{Kind: ToldDeregistered}
		}
	case f.Why == mem.NoRight && f.Want != 0 && r.Allows(f.Want):
		return Told{ToldPair, q.Attr.QPAccessFlags}
	case f.Why == mem.NoRight && f.Want != 0:
		return Told{ToldRegion, r.Access}
	}
	return Told{}
}

// PeerTold takes what the peer has told of why it refuses the oldest send.
func (q *QP) PeerTold(t Told) { q.found = Found{Told: t} }
