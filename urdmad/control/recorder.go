package control

import (
	"fmt"
	"slices"
	"time"

	"urdma/reason"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/cm"
	"urdma/verbs/abi"
)

// This file keeps what clients' flight recorders have, beyond the end of a client whose
// work has failed, and answers requests for it.

// Bounds of the ended clients whose events are kept, in all and of one user.
const (
	maxEnded     = 64
	maxUserEnded = 16
)

// ended is what is kept of a client that is gone.
type ended struct {
	owner  *account.Owner
	events []recorder.Event
}

// keep keeps the events of a session that ends; on the engine's thread.
func (w *Worker) keep(x *Session) {
	if x.client == nil || !x.client.Recorder.Failed() {
		return
	}
	e := &ended{x.Owner.Identity(), x.events()}
	w.ended = append(w.ended, e)
	own := 0
	for i := len(w.ended) - 1; i >= 0; i-- {
		if w.ended[i].owner.UID == x.Owner.UID {
			if own++; own > maxUserEnded {
				w.ended = slices.Delete(w.ended, i, i+1)
				return
			}
		}
	}
	if len(w.ended) > maxEnded {
		w.ended = slices.Delete(w.ended, 0, 1)
	}
}

// events copies what the session's recorder has, in no order; on the engine's thread.
func (x *Session) events() []recorder.Event {
	if x.client == nil {
		return nil
	}
	now := wallClock{time.Now(), x.w.Engine.Now()}
	return x.client.Recorder.Events(now.nanoseconds)
}

// past is what the recorders of all workers have that the capture wants. Each client's takes a
// turn, and those of others that the viewer may not see none.
func (c *capture) past() (all []recorder.Event) {
	add := func(owner *account.Owner, events []recorder.Event) {
		for i := range events {
			e := events[i]
			e.PID = uint32(owner.PID)
			if c.wantsEvent(owner, &e.TraceEvent) {
				all = append(all, e)
			}
		}
	}
	for _, w := range c.s.Workers {
		var clients []*Session
		var past []*ended
		w.Do(func() { clients, past = w.seenBy(c.viewer) })
		for _, e := range past {
			add(e.owner, e.events)
		}
		for _, x := range clients {
			var events []recorder.Event
			w.Do(func() {
				if !x.ended {
					events = x.events()
				}
			})
			add(&x.Owner, events)
		}
	}
	recorder.Sort(all)
	return all
}

// cmReasons are the reasons of events that tell of no connection.
var cmReasons = map[cm.EventKind]reason.Number{cm.EventAddrError: reason.NoAddress, cm.EventUnreachable: reason.Unreachable,
	cm.EventRejected: reason.Rejected, cm.EventConnectError: reason.Aborted}

// noteCM records an rdma_cm event, and why it tells of no connection; on the engine's
// thread.
func (x *Session) noteCM(e *cm.Event, v *abi.CMEvent) {
	noted := abi.TraceEvent{Kind: abi.TraceCM, Code: v.Event, Status: uint32(v.Status)}
	x.client.Recorder.Note(x.w.Engine.Now(), &noted)
	x.w.event(&x.Owner, &noted, "", time.Now())
	why, bad := cmReasons[e.Kind]
	if !bad {
		return
	}
	if e.Kind == cm.EventRejected && e.Reason == cm.InvalidService {
		why = reason.NoListener
	}
	text := fmt.Sprintf("%s, from %v to %v", abi.CMText(v.Event), e.Local, e.Peer)
	if e.Err != 0 {
		text += ": " + e.Err.Error()
	}
	if x.s.Why != nil {
		text += x.s.Why(x, e)
	}
	x.because(&abi.TraceEvent{Kind: abi.TraceReason, Code: uint32(why)}, text)
}
