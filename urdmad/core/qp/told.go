package qp

import (
	"fmt"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/core/mem"
)

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
	toldRegion       ToldKind = 1 // value: the rights of the region or window, enum ibv_access_flags
	toldPair         ToldKind = 2 // value: qp_access_flags
	toldRoom         ToldKind = 3 // value: bytes that the receive has room for
	toldReceive      ToldKind = 4 // the receive was wrong; value: its reason
	toldDeregistered ToldKind = 5 // the key has named a region until a moment ago
	toldGiven        ToldKind = 6 // nothing is wrong with the message; value: the reason
)

// Told is what the peer of the queue pair, whose message was refused, is told.
func (q *QP) Told() Told {
	f := &q.found
	switch {
	case f.given != 0:
		return Told{toldGiven, uint32(f.given)}
	case f.is == TooLong:
		return Told{toldRoom, f.room}
	case f.is == BadReceive:
		return Told{toldReceive, uint32(f.local)}
	case f.is != Denied:
		return Told{}
	}
	r := q.named(f.stag)
	switch {
	case r == nil:
		if _, ok := q.gone(f.stag); ok {
			return Told{Kind: toldDeregistered}
		}
	case f.why == mem.NoRight && f.want != 0 && r.Allows(f.want):
		return Told{toldPair, q.Attr.QPAccessFlags}
	case f.why == mem.NoRight && f.want != 0:
		return Told{toldRegion, r.Access}
	}
	return Told{}
}

// PeerTold takes what the peer has told of why it refuses the oldest send.
func (q *QP) PeerTold(t Told) { q.found = finding{element: t.text()} }

func (t Told) text() string {
	switch t.Kind {
	case toldRegion:
		return "the peer's region has " + Access(t.Value)
	case toldPair:
		return "qp_access_flags of the peer's queue pair are " + Access(t.Value)
	case toldRoom:
		return fmt.Sprintf("the peer's receive has room for %d bytes", t.Value)
	case toldReceive:
		return "the peer's receive is wrong: " + words.What(reason.Number(t.Value))
	case toldDeregistered:
		return "the peer has deregistered the region"
	case toldGiven:
		return "the peer says: " + words.What(reason.Number(t.Value))
	}
	return ""
}
