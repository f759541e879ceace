package watch

import (
	"fmt"
	"strings"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file describes failures of queue pairs in text for the owner of the queue pair.

// refusedPeer is the beginning of a text that was worded for the peer.
const refusedPeer = "this side refused its peer: "

// failureText describes a failure of q.
func failureText(q *qp.QP, f *qp.Failure) string {
	about := ""
	switch {
	case f.WR == nil && f.Given == 0 && (f.Is == qp.Denied || f.Is == qp.TooLong):
		return refusedPeer + findingText(q, &f.Found)
	case f.WR == nil:
		return findingText(q, &f.Found)
	case f.Peer != nil:
		about = "The peer says: " + findingText(f.Peer, &f.Found)
	case f.Refusal.Kind != 0:
		about = refusalText(f.Refusal)
	default:
		about = elementText(q, &f.Element)
	}
	return strings.TrimSuffix(describe(q, f.WR)+". "+about, ". ")
}

// describe describes a work request in the terms of ibv_post_send.
func describe(q *qp.QP, wr *qp.SendWR) string {
	var b strings.Builder
	b.WriteString(abi.CompletionText(wr.Op.Completion))
	if wr.State != qp.SendFailed {
		fmt.Fprintf(&b, " of %d bytes", wr.Length)
	}
	if wr.Op.RemoteAccess != 0 {
		fmt.Fprintf(&b, " at remote_addr %#x, rkey %#x", wr.RemoteAddr(), uint32(wr.RKey))
	}
	switch c := q.Connection(); {
	case c == nil || !c.Peer.IsValid():
	case c.ByNumber:
		fmt.Fprintf(&b, ", to queue pair %06x at %v", q.Attr.DestQPNum, c.Peer.Addr())
	default:
		fmt.Fprintf(&b, ", to %v", c.Peer)
	}
	return b.String()
}

// findingText describes the facts that q has found; the memory and receives are q's.
func findingText(q *qp.QP, f *qp.Found) string {
	if f.Given != 0 {
		return words.What(f.Given)
	}
	switch f.Is {
	case qp.Denied:
		return deniedText(q, f)
	case qp.TooLong:
		return fmt.Sprintf("a message of %d bytes or more met a receive (wr_id %#x) with room for %d",
			f.Length, f.WRID, f.Room)
	case qp.Revoked:
		return fmt.Sprintf("memory of the receive with wr_id %#x was deregistered or unmapped before its message was complete", f.WRID)
	case qp.BadReceive:
		text := fmt.Sprintf("the receive with wr_id %#x is wrong: %s. %s",
			f.WRID, words.What(f.Local), elementText(q, &f.Element))
		return strings.TrimSuffix(text, ". ")
	}
	return ""
}

func deniedText(q *qp.QP, f *qp.Found) string {
	asked := fmt.Sprintf("a request for %d bytes at %#x with rkey %#x was refused", f.Length, f.Addr, uint32(f.STag))
	if f.Want == 0 {
		asked = fmt.Sprintf("a request to invalidate rkey %#x was refused", uint32(f.STag))
	}
	r := q.Named(f.STag)
	if r == nil || f.Why == mem.NoRegion {
		return asked + ": " + nothingText(q, f.STag)
	}
	about := "; " + regionText(q, r) + ", of process " + q.Owner(r).Name
	switch f.Why {
	case mem.OtherDomain:
		return asked + ": it is of another protection domain, or a window for another queue pair" + about
	case mem.Wrap, mem.OutOfBounds:
		return asked + ": that is not inside" + about
	case mem.Misaligned:
		return asked + ": an atomic begins at a multiple of 8" + about
	}
	switch {
	case f.Why == mem.Unmapped:
		return asked + ": the process had not mapped it (IBV_ACCESS_ON_DEMAND), or not for this access" + about
	case f.Want == 0:
		return asked + ": it is no window of type 2" + about
	case r.Allows(f.Want):
		return fmt.Sprintf("%s: qp_access_flags of the queue pair are %s, without %s%s",
			asked, accessText(q.Attr.QPAccessFlags), accessText(f.Want), about)
	}
	return fmt.Sprintf("%s: it has no %s%s", asked, accessText(f.Want), about)
}

// regionText describes a region.
func regionText(q *qp.QP, r *mem.Region) string {
	kind := "region"
	if r.Of() != nil {
		kind = "window"
	}
	text := fmt.Sprintf("%s %#x is [%#x, +%d) with %s", kind, uint32(r.STag), r.Base(), r.Length(), accessText(r.Access))
	if r.Since != 0 {
		age := q.Table().Clock.Now - clock.Time(r.Since)
		text += fmt.Sprintf(", registered %.1f s before", float64(age)/float64(clock.Second))
	}
	return text
}

// nothingText describes a key that names no region.
func nothingText(q *qp.QP, s mem.STag) string {
	if g, ok := q.Gone(s); ok {
		return fmt.Sprintf("region %#x, [%#x, +%d), was deregistered", uint32(s), g.Base, g.Length)
	}
	return fmt.Sprintf("no region or window has the key %#x", uint32(s))
}

// accessText lists access rights, enum ibv_access_flags.
func accessText(flags uint32) string {
	var names []string
	for _, a := range []struct {
		flag uint32
		name string
	}{{abi.AccessLocalWrite, "IBV_ACCESS_LOCAL_WRITE"}, {abi.AccessRemoteWrite, "IBV_ACCESS_REMOTE_WRITE"},
		{abi.AccessRemoteRead, "IBV_ACCESS_REMOTE_READ"}, {abi.AccessRemoteAtomic, "IBV_ACCESS_REMOTE_ATOMIC"},
		{abi.AccessMWBind, "IBV_ACCESS_MW_BIND"}, {abi.AccessOnDemand, "IBV_ACCESS_ON_DEMAND"}} {
		if flags&a.flag != 0 {
			names = append(names, a.name)
		}
	}
	if names == nil {
		return "no access flags"
	}
	return strings.Join(names, "|")
}

// elementText describes an invalid element of a scatter/gather list.
func elementText(q *qp.QP, e *qp.Element) string {
	if e.Length == 0 {
		return ""
	}
	about := ""
	switch r := q.Named(mem.STag(e.LKey)); {
	case r == nil:
		about = nothingText(q, mem.STag(e.LKey))
	case r.PD == e.PD:
		about = regionText(q, r)
	}
	text := fmt.Sprintf("Element %d of the list is %d bytes at %#x with lkey %#x; %s",
		e.Index, e.Length, e.Addr, e.LKey, about)
	return strings.TrimSuffix(text, "; ")
}

// refusalText describes the reason that a peer has sent.
func refusalText(t qp.Refusal) string {
	switch t.Kind {
	case qp.RefusalRegion:
		return "the peer's region has " + accessText(t.Value)
	case qp.RefusalPair:
		return "qp_access_flags of the peer's queue pair are " + accessText(t.Value)
	case qp.RefusalRoom:
		return fmt.Sprintf("the peer's receive has room for %d bytes", t.Value)
	case qp.RefusalReceive:
		return "the peer's receive is wrong: " + words.What(reason.Number(t.Value))
	case qp.RefusalDeregistered:
		return "the peer has deregistered the region"
	case qp.RefusalGiven:
		return "the peer says: " + words.What(reason.Number(t.Value))
	}
	return ""
}
