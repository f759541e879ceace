package qp

import (
	"errors"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// Errors of changing queue pairs.
var (
	ErrTransition = errors.New("qp: no such queue pair state transition")
	ErrAttribute  = errors.New("qp: an attribute mask names what this queue pair does not have")
)

// RDMAConnectAccess are the rights that a queue pair grants its peer until
// MODIFY_QP says otherwise: those that rdma_cm gives.
const RDMAConnectAccess = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic

// Asynchronous events of a queue pair (ibv_get_async_event(3)).
const (
	EventFatal   = abi.EventQPFatal
	EventRequest = abi.EventQPReqErr
	EventAccess  = abi.EventQPAccessErr
)

// State is enum ibv_qp_state.
func (q *QP) State() uint32 { return q.state }

// Connectable reports whether a connection can be started on the queue pair:
// it exists, has none, and is in RESET or INIT.
func (q *QP) Connectable() bool {
	return !q.removed && q.carrier == nil && (q.state == abi.QPSReset || q.state == abi.QPSInit)
}

// Attach makes c the queue pair's carrier, moves it to RTS and takes up what
// was posted. Messages are numbered from 1 again.
func (q *QP) Attach(c Carrier) {
	q.carrier, q.acked = c, 0
	q.state = abi.QPSRTS
	q.SQ.connect(c.Common())
	q.SQ.more = true // posts are fetched in this turn, but not before the connection stands: they may end it
	q.t.Ready(q)
}

// Detach makes the queue pair forget its carrier, which calls it.
func (q *QP) Detach() { q.carrier = nil }

// Attribute masks that Modify takes (enum ibv_qp_attr_mask).
const knownAttributes = abi.QPMaskState | abi.QPMaskCurState | abi.QPMaskAccessFlags | abi.QPMaskPKeyIndex |
	abi.QPMaskPort | abi.QPMaskMaxQPRdAtomic | abi.QPMaskMaxDestRdAtomic

// Modify changes attributes and state as ibv_modify_qp(3) asks. Moves to RTR and
// RTS are rdma_cm's (Attach); a client may go to RESET, INIT and ERR. Nothing
// has changed when it returns an error.
func (q *QP) Modify(mask uint32, a *abi.QPAttr) error {
	if mask&^knownAttributes != 0 || mask&abi.QPMaskPKeyIndex != 0 && a.PKeyIndex != 0 {
		return ErrAttribute
	}
	if mask&abi.QPMaskCurState != 0 && a.CurQPState != q.state {
		return ErrTransition
	}
	if mask&abi.QPMaskState != 0 {
		if err := q.setState(a.QPState); err != nil {
			return err
		}
	}
	if mask&abi.QPMaskAccessFlags != 0 {
		q.Attr.QPAccessFlags = a.QPAccessFlags
	}
	if mask&abi.QPMaskMaxQPRdAtomic != 0 {
		q.Attr.MaxRdAtomic = a.MaxRdAtomic
	}
	if mask&abi.QPMaskMaxDestRdAtomic != 0 {
		q.Attr.MaxDestRdAtomic = a.MaxDestRdAtomic
	}
	if mask&abi.QPMaskPort != 0 {
		q.Attr.PortNum = a.PortNum
	}
	return nil
}

func (q *QP) setState(to uint32) error {
	switch {
	case to == q.state:
	case to == abi.QPSErr:
		q.Flush()
		if q.carrier != nil {
			q.carrier.Failed() // at once: what was flushed cannot be sent again
		}
	case to == abi.QPSReset:
		if q.carrier != nil {
			q.carrier.Detach()
		}
		q.reset()
	case to == abi.QPSInit && q.state == abi.QPSReset:
		q.state = to
	default:
		return ErrTransition
	}
	return nil
}

// reset forgets all work without completions, as a move to RESET does.
func (q *QP) reset() {
	q.releaseWork()
	q.SQ.reset()
	q.RQ.reset()
	q.state = abi.QPSReset
}

// Fail is for errors that no work request stands for: the queue pair goes to the
// error state, its connection ends, and the client gets an asynchronous event.
func (q *QP) Fail(event uint32) {
	if q.removed || q.state == abi.QPSErr {
		return
	}
	q.FlushWithEvent(event)
	if q.carrier != nil {
		q.carrier.Failed()
	}
}

// FlushWithEvent moves the queue pair to the error state for a carrier that is
// ending its connection, and tells the client why.
func (q *QP) FlushWithEvent(event uint32) {
	q.Flush()
	q.sendAsync(event)
}

func (q *QP) sendAsync(event uint32) {
	ev := abi.AsyncEvent{EventType: event, Handle: q.Handle}
	q.t.Events.Send(q.Async, abi.Bytes(&ev))
}

// CheckRemote says whether the peer may use n bytes at va of r with the rights
// want: region and queue pair have to grant them.
func (q *QP) CheckRemote(r *mem.Region, va, n uint64, want uint32) mem.Violation {
	v := r.CheckRemote(q.PD, va, n, want)
	if v == mem.Allowed && q.Attr.QPAccessFlags&want != want {
		return mem.NoRight
	}
	return v
}
