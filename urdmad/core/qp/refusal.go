package qp

import "urdma/urdmad/core/mem"

// Refusal is the reason that one urdmad sends another for refusing a message, in addition to the
// error code of their protocol. It contains no address, and no facts about memory that the peer
// did not name, because programs of other users may read it.
type Refusal struct {
	Kind  RefusalKind
	Value uint32 // meaning depends on Kind
}

// RefusalKind says what a Refusal means. The numbers are those on the wire (docs/WIRE.md chapter
// 6).
type RefusalKind uint16

const (
	// the region's or window's rights are too few; value: the rights, enum ibv_access_flags
	RefusalRegion       RefusalKind = 1
	RefusalPair         RefusalKind = 2 // the queue pair's rights are too few; value: qp_access_flags
	RefusalRoom         RefusalKind = 3 // the receive is too short; value: its length in bytes
	RefusalReceive      RefusalKind = 4 // the receive was invalid; value: the reason
	RefusalDeregistered RefusalKind = 5 // the key's region was deregistered recently
	RefusalGiven        RefusalKind = 6 // the message itself was valid; value: the reason
)

// Refusal returns the reason to send to the peer for the last refused message.
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

// PeerRefused records the peer's reason for refusing the oldest send.
func (q *QP) PeerRefused(t Refusal) { q.found = Found{Refusal: t} }

// PeerFound takes over the facts from a peer in this urdmad that refuses the oldest send. A peer
// of another user passes only its Refusal.
func (q *QP) PeerFound(peer *QP) {
	if q.Client.User == "" || q.Client.User != peer.Client.User {
		q.PeerRefused(peer.Refusal())
	} else if peer.found.Is != Done || peer.found.Given != 0 {
		q.found = peer.found
		q.found.Peer = peer
	}
}
