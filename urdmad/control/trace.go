package control

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"syscall"
	"time"

	"urdma/reason"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// This file gives events to the captures that have asked for them: what package qp
// tells, requests and bookmarks.

// traceIfAsked has events told while a capture wants them; on the engine's thread.
func (w *Worker) traceIfAsked() {
	for _, x := range w.attached {
		w.trace(x)
	}
}

// trace has a client's events told, if a capture wants them; on the engine's thread.
func (w *Worker) trace(x *Session) {
	wanted := slices.ContainsFunc(w.captures, func(c *capture) bool { return c.wantsClient(&x.Owner) })
	x.traced.Store(wanted)
	x.client.Trace = nil
	if wanted {
		x.client.Trace = x.trace
	}
}

func (c *capture) wantsEvents() bool { return c.filter.Flags&abi.CaptureEvents != 0 }

// wantsClient reports whether the capture may have any event of a client's but bookmarks.
func (c *capture) wantsClient(owner *account.Owner) bool {
	return c.wantsEvents() && c.viewer.Sees(owner) && (c.filter.PID == 0 || int(c.filter.PID) == owner.PID)
}

// trace is a qp.Trace.
func (x *Session) trace(e *abi.TraceEvent, text string) {
	if slices.ContainsFunc(x.w.captures, func(c *capture) bool { return c.wantsKind(e.Kind) }) {
		x.w.event(&x.Owner, e, text, time.Now())
	}
}

// traceCall records a request that was answered, and why if it was refused, and reports it.
func (x *Session) traceCall(t abi.Type, qpn uint32, begun time.Time, err error) {
	e := abi.TraceEvent{Kind: abi.TraceCall, QPN: qpn, Code: uint32(t), DurationNs: uint64(time.Since(begun))}
	if err != nil {
		e.Status = uint32(ErrnoOf(err))
	}
	if x.client != nil {
		x.client.Recorder.Call(begun.UnixNano(), &e)
	}
	traced := x.traced.Load()
	if !traced && err == nil {
		return
	}
	x.Do(func() {
		if traced {
			x.w.event(&x.Owner, &e, "", begun)
		}
		if err != nil {
			x.refused(t, qpn, err)
		}
	})
}

// refused records why a request was refused; on the engine's thread.
func (x *Session) refused(t abi.Type, qpn uint32, err error) {
	errno := ErrnoOf(err)
	e := abi.TraceEvent{Kind: abi.TraceReason, QPN: qpn, Code: uint32(reason.OfErrno(errno))}
	text := t.Call()
	if why := strings.TrimSuffix(err.Error(), ": "+errno.Error()); why != errno.Error() {
		text += ": " + why
	}
	x.because(&e, text)
}

// because records why something of the session's failed, and reports it; on the engine's
// thread.
func (x *Session) because(e *abi.TraceEvent, text string) {
	if x.client != nil {
		x.client.Recorder.Reason(x.w.Engine.Now(), e, text)
	}
	x.w.event(&x.Owner, e, text, time.Now())
}

// pairNamed is the number of the queue pair that a request is for, or 0.
func (x *Session) pairNamed(t abi.Type, b []byte) uint32 {
	size := abi.Size[abi.Header]()
	switch t {
	case abi.ModifyQP, abi.QueryQP, abi.DestroyQP, abi.AttachMcast, abi.DetachMcast:
	default:
		return 0
	}
	if len(b) < size+4 {
		return 0
	}
	if o, err := Find[*QP](x, binary.NativeEndian.Uint32(b[size:])); err == nil {
		return o.QP.QPN
	}
	return 0
}

// clientSeen tells of a client that came or has gone; on the engine's thread.
func (x *Session) clientSeen(came bool) {
	e := abi.TraceEvent{Kind: abi.TraceClient}
	if came {
		e.Code = 1
	}
	x.w.event(&x.Owner, &e, x.Owner.Name, time.Now())
}

// linkSeen tells of the link of a device that came up or went down; on the engine's thread.
func (w *Worker) linkSeen(name string, up bool) {
	e := abi.TraceEvent{Kind: abi.TraceLink}
	if up {
		e.Code = 1
	}
	w.event(nil, &e, name, time.Now())
}

// mark sets a bookmark.
func (x *Session) mark(m *abi.MarkRequest, _ *Reply) error {
	text, _, _ := bytes.Cut(m.Text[:], []byte{0})
	if len(text) == 0 {
		return syscall.EINVAL
	}
	now := time.Now()
	x.Do(func() {
		e := abi.TraceEvent{Kind: abi.TraceMark}
		if x.client != nil {
			x.client.Recorder.Mark(x.w.Engine.Now(), &e, string(text))
			x.recordSoon("it has set a bookmark: " + string(text))
		}
		x.w.event(&x.Owner, &e, string(text), now)
	})
	return nil
}

// event gives an event to those who may see its owner's; nil: one that belongs to
// nobody. On the engine's thread.
func (w *Worker) event(owner *account.Owner, e *abi.TraceEvent, text string, at time.Time) {
	if owner != nil {
		e.PID = uint32(owner.PID)
	}
	for _, c := range w.captures {
		if c.wantsKind(e.Kind) && c.wantsEvent(owner, e) {
			c.put(e, text, at.UnixNano())
		}
	}
}

// wantsKind leaves a capture of changes those alone.
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

// wantsEvent applies the filter. Bookmarks pass it: they are for all that the owner's
// user traces.
func (c *capture) wantsEvent(owner *account.Owner, e *abi.TraceEvent) bool {
	if !c.viewer.Admin && (owner == nil || !c.viewer.Sees(owner)) {
		return false
	}
	f := &c.filter
	return e.Kind == abi.TraceMark || (f.QPN == 0 || f.QPN == e.QPN) && (f.PID == 0 || f.PID == e.PID)
}

// put writes an event that happened at a time, ns since 1970. A reason's text is longer
// than notes are.
func (c *capture) put(e *abi.TraceEvent, text string, at int64) {
	begun := time.Now()
	c.to.Lock()
	defer c.to.Unlock()
	defer func() { c.to.ring.Spend(time.Since(begun)) }()
	b := abi.Bytes(e)
	if e.Kind == abi.TraceReason {
		b, text = append(slices.Clone(b), text...), ""
	}
	record := abi.CaptureRecord{Kind: abi.CaptureEvent, TimeNs: uint64(at), FrameBytes: uint32(len(b)), Device: abi.NoDevice}
	if at, ok := c.to.ring.Begin(record, b); ok {
		c.to.ring.End(at, text)
	}
}
