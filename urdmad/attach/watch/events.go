package watch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// This file passes events to flight recorders and to captures that want them: events of package
// qp, requests, rdma_cm events and bookmarks.

// traceIfAsked turns on detailed events of the client while a capture wants them; on the worker's
// thread.
func (c *client) traceIfAsked() {
	wants := func(kind uint32) bool {
		return slices.ContainsFunc(c.w.captures, func(p *capture) bool {
			return p.wantsClient(&c.x.Owner) && p.wantsKind(kind)
		})
	}
	c.traced.Store(wants(abi.TraceState))
	c.x.Client().WatchAll = wants(abi.TraceSend)
}

// capturesChanged adapts the clients' events to the present captures; on the worker's thread.
func (w *worker) capturesChanged() {
	for _, c := range w.clients {
		c.traceIfAsked()
	}
}

func (c *capture) wantsEvents() bool { return c.filter.Flags&abi.CaptureEvents != 0 }

// wantsClient reports whether the capture may include events of a client, apart from bookmarks.
func (c *capture) wantsClient(owner *account.Owner) bool {
	return c.wantsEvents() && c.viewer.Sees(owner) && (c.filter.PID == 0 || int(c.filter.PID) == owner.PID)
}

// Event implements qp.Watch.
func (c *client) Event(e *abi.TraceEvent) {
	if isRare(e) {
		c.recorder.Note(c.w.Engine.Now(), e)
	}
	if c.traced.Load() {
		c.tell(e, "")
	}
}

// isRare reports whether an event goes to the flight recorder.
func isRare(e *abi.TraceEvent) bool {
	switch e.Kind {
	case abi.TraceSend, abi.TraceReceive, abi.TracePlaced:
		return false
	case abi.TraceCompletion:
		return e.Status != abi.StatusSuccess && e.Status != abi.StatusWRFlushErr
	}
	return true
}

// tell passes an event of the client to captures.
func (c *client) tell(e *abi.TraceEvent, text string) { c.w.event(&c.x.Owner, e, text, time.Now()) }

// Failed implements qp.Watch.
func (c *client) Failed(q *qp.QP, f *qp.Failure) {
	e := abi.TraceEvent{Kind: abi.TraceReason, QPN: q.QPN, Code: uint32(f.Why)}
	if wr := f.WR; wr != nil {
		e.Status, e.WRID, e.Length = f.Status, wr.ID(), wr.Length
	}
	text := failureText(q, f)
	c.explainFailure(&e, text)
	c.watch.s.Log.Info("queue pair fails", "qpn", q.QPN, "client", q.Client.Name, "reason", f.Why.String(),
		"what", words.What(f.Why), "text", text)
}

// explainFailure records why an operation of the client failed, and tells captures.
func (c *client) explainFailure(e *abi.TraceEvent, text string) {
	c.recorder.Reason(c.w.Engine.Now(), e, text)
	if n := reason.Number(e.Code); e.QPN != 0 && n.Errno() == 0 {
		c.recordSoon(fmt.Sprintf("queue pair %06x has failed: %v, %s", e.QPN, n, words.What(n)))
	}
	c.tell(e, text)
}

// Because records and reports why an operation of a session failed; on the worker's thread.
func (v *Watch) Because(x *control.Session, e *abi.TraceEvent, text string) {
	if c := clientOf(x); c != nil {
		c.explainFailure(e, text)
		return
	}
	v.workers[x.Worker()].event(&x.Owner, e, text, time.Now())
}

// answered records and reports a request that was answered, with the reason if it was refused.
func (v *Watch) answered(x *control.Session, a control.Answered) {
	e := abi.TraceEvent{Kind: abi.TraceCall, Code: uint32(a.Type), DurationNs: uint64(time.Since(a.Begun))}
	if o, ok := a.For.(*objects.QP); ok {
		e.QPN = o.QP.QPN
	}
	if a.Err != nil {
		e.Status = uint32(control.ErrnoOf(a.Err))
	}
	c := clientOf(x)
	if c != nil {
		c.recorder.Call(a.Begun.UnixNano(), &e)
	}
	traced := c != nil && c.traced.Load()
	if traced || a.Err != nil {
		v.showAnswered(x, c, e, a)
	}
}

// showAnswered shows a request to those who trace the client, and records why it was refused. It is a function of its
// own so that requests that nobody traces allocate nothing.
func (v *Watch) showAnswered(x *control.Session, c *client, e abi.TraceEvent, a control.Answered) {
	x.Do(func() {
		if c != nil && c.traced.Load() {
			c.w.event(&x.Owner, &e, "", a.Begun)
		}
		if a.Err != nil {
			v.refused(x, a.Type, e.QPN, a.Err)
		}
	})
}

// refused records why a request was refused; on the worker's thread.
func (v *Watch) refused(x *control.Session, t abi.Type, qpn uint32, err error) {
	errno := control.ErrnoOf(err)
	e := abi.TraceEvent{Kind: abi.TraceReason, QPN: qpn, Code: uint32(reason.OfErrno(errno))}
	text := t.Call()
	var lost *objects.NoRoute
	if errors.As(err, &lost) {
		text += ": " + words.NoRoute(lost.To, v.ports(lost.From))
	}
	if why := strings.TrimSuffix(err.Error(), ": "+errno.Error()); why != errno.Error() {
		text += ": " + why
	}
	v.Because(x, &e, text)
}

// ports returns port dev, or all ports if it is -1.
func (v *Watch) ports(dev int) (list []words.Port) {
	for i := range v.s.Devices {
		if d := &v.s.Devices[i]; dev < 0 || i == dev {
			list = append(list, words.Port{Name: d.Name, Network: d.At().Address})
		}
	}
	return list
}

// cmReasons are the reasons of events that tell of no connection.
var cmReasons = map[cm.EventKind]reason.Number{cm.EventAddrError: reason.NoAddress,
	cm.EventUnreachable: reason.Unreachable, cm.EventRejected: reason.Rejected, cm.EventConnectError: reason.Aborted}

// deliver records an rdma_cm event, with the reason if it reports a failed connection. It keeps
// no event back.
func (v *Watch) deliver(x *control.Session, _ *events.Socket, e *cm.Event, m *abi.CMEvent) (kept bool) {
	if w := v.workers[x.Worker()]; len(w.captures) > 0 {
		w.handshake(e)
	}
	noted := abi.TraceEvent{Kind: abi.TraceCM, Code: m.Event, Status: uint32(m.Status)}
	if c := clientOf(x); c != nil {
		c.recorder.Note(c.w.Engine.Now(), &noted)
		c.tell(&noted, "")
	}
	why, bad := cmReasons[e.Kind]
	if !bad {
		return false
	}
	if e.Kind == cm.EventRejected && e.Reason == handshake.InvalidService {
		why = reason.NoListener
	}
	text := fmt.Sprintf("%s, from %v to %v", abi.CMText(m.Event), e.Local, e.Peer)
	if e.Err != 0 {
		text += ": " + e.Err.Error()
	}
	if v.Why != nil {
		text += v.Why(x, e)
	}
	v.Because(x, &abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(why)}, text)
	return false
}

// seen reports that the client has come or is ending.
func (c *client) seen(came bool) {
	e := abi.TraceEvent{Kind: abi.TraceClient}
	if came {
		e.Code = 1
	}
	c.tell(&e, c.x.Owner.Name)
}

// linkChanged reports that a port's link has come up or gone down.
func (v *Watch) linkChanged(dev int, up bool) {
	e := abi.TraceEvent{Kind: abi.TraceLink}
	if up {
		e.Code = 1
	}
	first := v.workers[v.s.Workers[0]] // all workers have the same captures
	first.event(nil, &e, v.s.Devices[dev].Name, time.Now())
}

// mark sets a bookmark.
func (v *Watch) mark(x *control.Session, m *abi.MarkRequest, _ *control.Reply) error {
	text, _, _ := bytes.Cut(m.Text[:], []byte{0})
	if len(text) == 0 {
		return syscall.EINVAL
	}
	now := time.Now()
	x.Do(func() {
		e := abi.TraceEvent{Kind: abi.TraceMark}
		if c := clientOf(x); c != nil {
			c.recorder.Mark(c.w.Engine.Now(), &e, string(text))
			c.recordSoon("it has set a bookmark: " + string(text))
		}
		v.workers[x.Worker()].event(&x.Owner, &e, string(text), now)
	})
	return nil
}

// event passes an event to the captures that may see its owner's events; owner nil means that it
// belongs to no client. On the worker's thread.
func (w *worker) event(owner *account.Owner, e *abi.TraceEvent, text string, at time.Time) {
	if owner != nil {
		e.PID = uint32(owner.PID)
	}
	for _, c := range w.captures {
		if c.wantsKind(e.Kind) && c.wantsEvent(owner, e) {
			c.put(e, text, at.UnixNano())
		}
	}
}

// wantsKind reports whether the capture wants events of a kind; a capture of changes wants no
// others.
func (c *capture) wantsKind(kind uint32) bool {
	if !c.wantsEvents() || c.filter.Flags&abi.CaptureChanges == 0 {
		return c.wantsEvents()
	}
	switch kind {
	case abi.TraceClient, abi.TraceState, abi.TraceAsync, abi.TraceCM, abi.TraceLink, abi.TraceMark:
		return true
	}
	return false
}

// wantsEvent applies the filter. Bookmarks always pass: they are for all captures of the owner's
// user.
func (c *capture) wantsEvent(owner *account.Owner, e *abi.TraceEvent) bool {
	if !c.viewer.Admin && (owner == nil || !c.viewer.Sees(owner)) {
		return false
	}
	f := &c.filter
	return e.Kind == abi.TraceMark || (f.QPN == 0 || f.QPN == e.QPN) && (f.PID == 0 || f.PID == e.PID)
}

// put writes an event; at is in ns since 1970. The text of a reason may be longer than a note.
func (c *capture) put(e *abi.TraceEvent, text string, at int64) {
	begun := time.Now()
	c.to.Lock()
	defer c.to.Unlock()
	defer func() { c.to.ring.Spend(time.Since(begun)) }()
	b := abi.Bytes(e)
	if e.Kind == abi.TraceReason {
		b, text = append(slices.Clone(b), text...), ""
	}
	record := abi.CaptureRecord{Kind: abi.CaptureEvent, TimeNs: uint64(at), FrameBytes: uint32(len(b)),
		Device: abi.NoDevice}
	if at, ok := c.to.ring.Begin(record, b); ok {
		c.to.ring.End(at, text)
	}
}
