package qp

import (
	"fmt"
	"strings"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file says why a queue pair has failed: a number for its completions and its
// state, and a text for people, which is made once for each move to the error state.

// finding is what the last step of arrive.go that refused a message was about.
type finding struct {
	is           Outcome // Done: there is none
	why          mem.Violation
	stag         mem.STag
	addr, length uint64
	want         uint32        // rights, enum ibv_access_flags
	wrID         uint64        // of the receive
	room         uint32        // bytes, of a receive that is too short
	local        reason.Number // of a wrong receive
	element      string        // what is wrong with one, or with a send
	given        reason.Number // see Refuse; 0: the refusal is the step's own
}

// Why is the reason of the error state; 0: there is none, or it is unknown.
func (q *QP) Why() reason.Number { return q.why }

// deny notes a violation, and is the verdict for it.
func (q *QP) deny(v mem.Violation, stag mem.STag, addr, length uint64, want uint32) Verdict {
	q.found = finding{is: Denied, why: v, stag: stag, addr: addr, length: length, want: want}
	return Verdict{Denied, v}
}

// PeerFound takes what a peer of this urdmad, which refuses the oldest send, has found.
func (q *QP) PeerFound(peer *QP) {
	if q.Client.User == "" || q.Client.User != peer.Client.User {
		q.PeerTold(peer.Told())
	} else if text := peer.found.text(peer); text != "" {
		q.found = finding{element: "The peer says: " + text}
	}
}

// FlushForReceive ends a queue pair because of a wrong receive.
func (q *QP) FlushForReceive() {
	why := q.found.local
	switch {
	case q.found.given != 0:
		why = q.found.given
	case q.found.is != BadReceive:
		why = reason.LocalRevoked
	}
	if q.state != abi.QPSErr {
		q.because(why, q.found.text(q))
	}
	q.Flush(why)
}

// because notes why the queue pair fails, and what that is about, the first time.
func (q *QP) because(why reason.Number, text string) {
	if q.why == 0 && !q.leaving {
		q.why = why
		q.explain(abi.TraceEvent{Code: uint32(why)}, text)
	}
}

// becauseOf is because for the work request that fails with a status.
func (q *QP) becauseOf(wr *SendWR, status uint32, why reason.Number) {
	if q.why != 0 || q.leaving {
		return
	}
	q.why = why
	text := []string{q.describe(wr)}
	if q.found.element != "" {
		text = append(text, q.found.element)
	}
	q.explain(abi.TraceEvent{Code: uint32(why), Status: status, WRID: wr.id, Length: wr.Length}, strings.Join(text, ". "))
}

// explain records a reason and tells of it. It ends what was found: that was said.
func (q *QP) explain(e abi.TraceEvent, text string) {
	q.found = finding{}
	e.Kind, e.QPN = abi.TraceReason, q.QPN
	q.Client.Recorder.Reason(q.t.Clock.Now, &e, text)
	if q.Client.Trace != nil {
		q.Client.Trace(&e, text)
	}
	q.t.log.Info("queue pair fails", "qpn", q.QPN, "client", q.Client.Name, "reason", reason.Number(e.Code).String(),
		"what", words.What(reason.Number(e.Code)), "text", text)
}

// describe says what a work request is to do, in the words of ibv_post_send.
func (q *QP) describe(wr *SendWR) string {
	var b strings.Builder
	b.WriteString(abi.CompletionText(wr.Op.Completion))
	if wr.State != SendFailed {
		fmt.Fprintf(&b, " of %d bytes", wr.Length)
	}
	if wr.Op.RemoteAccess != 0 {
		fmt.Fprintf(&b, " at remote_addr %#x, rkey %#x", wr.remote, uint32(wr.RKey))
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

// RefusedPeer is what the text of a reason begins with that is worded for the peer.
const RefusedPeer = "this side refused its peer: "

// refuses tells whether the peer has asked for what it was not to have.
func (f *finding) refuses() bool {
	return f.given == 0 && (f.is == Denied || f.is == TooLong)
}

// text says what was found, in words for the owner of q, whose memory and receives it is about.
func (f *finding) text(q *QP) string {
	if f.given != 0 {
		return words.What(f.given)
	}
	switch f.is {
	case Denied:
		return f.denied(q)
	case TooLong:
		return fmt.Sprintf("a message of %d bytes or more met a receive (wr_id %#x) with room for %d", f.length, f.wrID, f.room)
	case Revoked:
		return fmt.Sprintf("memory of the receive with wr_id %#x was deregistered before its message was complete", f.wrID)
	case BadReceive:
		return strings.TrimSuffix(fmt.Sprintf("the receive with wr_id %#x is wrong: %s. %s", f.wrID, words.What(f.local), f.element), ". ")
	}
	return ""
}

func (f *finding) denied(q *QP) string {
	asked := fmt.Sprintf("a request for %d bytes at %#x with rkey %#x was refused", f.length, f.addr, uint32(f.stag))
	if f.want == 0 {
		asked = fmt.Sprintf("a request to invalidate rkey %#x was refused", uint32(f.stag))
	}
	r := q.named(f.stag)
	if r == nil || f.why == mem.NoRegion {
		return asked + ": " + q.nothing(f.stag)
	}
	about := "; " + q.t.about(r) + ", of process " + q.owner(r).Name
	switch f.why {
	case mem.OtherDomain:
		return asked + ": it is of another protection domain, or a window for another queue pair" + about
	case mem.Wrap, mem.OutOfBounds:
		return asked + ": that is not inside" + about
	case mem.Misaligned:
		return asked + ": an atomic begins at a multiple of 8" + about
	}
	switch {
	case f.want == 0:
		return asked + ": it is no window of type 2" + about
	case r.Allows(f.want):
		return fmt.Sprintf("%s: qp_access_flags of the queue pair are %s, without %s%s", asked, Access(q.Attr.QPAccessFlags), Access(f.want), about)
	}
	return fmt.Sprintf("%s: it has no %s%s", asked, Access(f.want), about)
}

// named is the region or window that a key names, unless it belongs to another client: to
// whoever uses the queue pair that is as none.
func (q *QP) named(s mem.STag) *mem.Region {
	if r := q.t.Regions.Lookup(s); r != nil && r.Space == q.owner(r).Space {
		return r
	}
	return nil
}

// gone is the region that a key has named until not long ago, likewise.
func (q *QP) gone(s mem.STag) (g mem.Gone, ok bool) {
	g, ok = q.t.Regions.Gone(s)
	return g, ok && (g.PD == q.PD || q.Domain != nil && q.Domain.protection[g.PD] != nil)
}

// about says what a region is.
func (t *Table) about(r *mem.Region) string {
	kind := "region"
	if r.Of() != nil {
		kind = "window"
	}
	text := fmt.Sprintf("%s %#x is [%#x, +%d) with %s", kind, uint32(r.STag), r.Base(), r.Length(), Access(r.Access))
	if r.Since != 0 {
		text += fmt.Sprintf(", registered %.1f s before", float64(t.Clock.Now-clock.Time(r.Since))/float64(clock.Second))
	}
	return text
}

// nothing says what is known of a key that names nothing.
func (q *QP) nothing(s mem.STag) string {
	if g, ok := q.gone(s); ok {
		return fmt.Sprintf("region %#x, [%#x, +%d), was deregistered", uint32(s), g.Base, g.Length)
	}
	return fmt.Sprintf("no region or window has the key %#x", uint32(s))
}

// Access lists rights, enum ibv_access_flags.
func Access(flags uint32) string {
	var names []string
	for _, a := range []struct {
		flag uint32
		name string
	}{{abi.AccessLocalWrite, "IBV_ACCESS_LOCAL_WRITE"}, {abi.AccessRemoteWrite, "IBV_ACCESS_REMOTE_WRITE"}, {abi.AccessRemoteRead, "IBV_ACCESS_REMOTE_READ"},
		{abi.AccessRemoteAtomic, "IBV_ACCESS_REMOTE_ATOMIC"}, {abi.AccessMWBind, "IBV_ACCESS_MW_BIND"}} {
		if flags&a.flag != 0 {
			names = append(names, a.name)
		}
	}
	if names == nil {
		return "no access flags"
	}
	return strings.Join(names, "|")
}

// wrongElement says what is wrong with element j of a scatter/gather list that is not
// what a queue pair of protection domain pd may use.
func (q *QP) wrongElement(j int, el *abi.SGE, pd uint64) reason.Number {
	r := q.named(mem.STag(el.LKey))
	why, about := reason.LocalNoRight, ""
	switch {
	case r == nil:
		why, about = reason.LocalNoRegion, q.nothing(mem.STag(el.LKey))
	case r.Of() != nil:
		why = reason.LocalWindow
	case r.PD != pd:
		why = reason.LocalDomain
	case !r.Contains(el.Addr, uint64(el.Length)):
		why = reason.LocalBounds
	}
	if q.why == 0 { // else nobody reads it
		if r != nil && r.PD == pd {
			about = q.t.about(r)
		}
		q.found.element = strings.TrimSuffix(fmt.Sprintf("Element %d of the list is %d bytes at %#x with lkey %#x; %s", j, el.Length, el.Addr, el.LKey, about), "; ")
	}
	return why
}

// lengthWrong is the reason for a message that is too long.
func (q *QP) lengthWrong() reason.Number {
	if q.Type == abi.QPTypeUD {
		return reason.DatagramSize
	}
	return reason.MessageTooLong
}

// notAgreed is the reason for an operation that the queue pair or its peer does not have.
func (q *QP) notAgreed(op *abi.Operation) reason.Number {
	switch {
	case !op.Supported || !op.Of(q.Type):
		return reason.Operation
	case op.WritesLocal && !op.Atomic && q.SQ.maxReads == 0, op.Atomic && q.SQ.takes&Atomics != 0 && q.SQ.maxReads == 0:
		return reason.NoReads
	}
	return reason.PeerTakesNone
}

// statusOf is the completion status, enum ibv_wc_status, for what is wrong with a work
// request.
func statusOf(why reason.Number) uint32 {
	switch {
	case why >= reason.LocalNoRegion && why <= reason.LocalUnreachable:
		return abi.StatusLocProtErr
	case why == reason.MessageTooLong, why == reason.AtomicTooShort, why == reason.DatagramSize:
		return abi.StatusLocLenErr
	}
	return abi.StatusLocQPOpErr
}
