package verbs

import (
	"urdma/verbs/abi"
	"urdma/verbs/yield"
)

// SendWR is a send work request (ibv_post_send(3)). It may be changed and reused as soon as it is posted; the
// memory in SGE only after the completion was polled. Inline data is copied at once.
type SendWR struct {
	ID     uint64 // returned in the completion
	Op     Opcode
	Flags  SendFlags
	SGE    []SGE
	Inline []byte // instead of SGE; not for OpRead
	Remote Remote // for OpWrite, OpWriteWithImm, OpRead and atomics
	// Add is OpFetchAdd's operand; Compare and Swap are OpCmpSwap's. Both operate on 8 aligned bytes in each
	// machine's own byte order, and write the old value to SGE. If the peer's memory is shared with urdmad
	// (MR.Shared), they are atomic also with respect to sync/atomic there; otherwise only with respect to
	// work requests.
	Add, Compare, Swap uint64

	Imm uint32 // immediate data, for operations that have it; C programs see htonl(Imm)
	// InvalidateSTag is the rkey of a window of type 2: for OpSendWithInv the peer's window, for OpLocalInv
	// our own.
	InvalidateSTag uint32
	Bind           Bind // for OpBindWindow
	// To is the destination of the message; used only on queue pairs of type UD.
	To Destination
	// SRQN is the shared receive queue that receives the message (SRQ.SRQN); used only on queue pairs of type
	// XRCSend.
	SRQN uint32
}

// RecvWR is a receive work request (ibv_post_recv(3)): the memory for one message.
type RecvWR struct {
	ID  uint64
	SGE []SGE
}

// check makes the checks of liburdma's ibv_post_send; urdmad checks keys, bounds and rights.
func (q *QP) check(wr *SendWR) error {
	op := abi.OperationOf(uint32(wr.Op))
	if op == nil || !op.Supported {
		return ErrUnsupported
	}
	if !op.Of(uint32(q.kind)) || q.kind == UD && !wr.To.valid() || q.kind == XRCSend && op.TakesReceive && wr.SRQN == 0 {
		return ErrWorkRequest
	}
	if wr.Op == OpBindWindow && (wr.Bind.Window == nil || wr.Bind.MR == nil || wr.Bind.Length < 0) {
		return ErrWorkRequest
	}
	if wr.Inline != nil && !op.Inline || op.WritesLocal && len(wr.SGE) > q.ctx.device.maxSGERead {
		return ErrWorkRequest
	}
	if wr.Flags&^(Fence|Signaled|Solicited) != 0 || wr.Inline != nil && len(wr.SGE) > 0 ||
		len(wr.Inline) > q.ring.SQ.MaxInline() || len(wr.SGE) > q.ring.SQ.MaxSGE() {
		return ErrWorkRequest
	}
	var total uint64
	for i := range wr.SGE {
		total += uint64(wr.SGE[i].Length)
	}
	if total > q.maxMessage {
		return ErrWorkRequest
	}
	return nil
}

func (q *QP) writeSend(wr *SendWR) error {
	if err := q.check(wr); err != nil {
		return err
	}
	e := abi.SQE{WRID: wr.ID, Opcode: uint32(wr.Op), Flags: uint32(wr.Flags), ImmOrSTag: wr.InvalidateSTag,
		RKey: wr.Remote.RKey, RemoteAddr: wr.Remote.Addr}
	if abi.OperationOf(e.Opcode).Immediate {
		e.ImmOrSTag = networkOrder(wr.Imm)
	}
	switch q.kind {
	case UD:
		wr.To.write(&e)
	case XRCSend:
		e.RemoteSRQN = wr.SRQN
	}
	switch wr.Op {
	case OpFetchAdd:
		e.CompareAdd = wr.Add
	case OpCmpSwap:
		e.CompareAdd, e.Swap = wr.Compare, wr.Swap
	case OpBindWindow:
		wr.Bind.write(&e)
	}
	written := false
	if wr.Inline != nil {
		written = q.ring.SQ.WriteInline(&e, wr.Inline)
	} else {
		written = q.ring.SQ.Write(&e, wr.SGE)
	}
	if !written {
		return ErrQueueFull
	}
	if wr.Op == OpBindWindow {
		wr.Bind.Window.rkey.Store(e.RKey)
	}
	return nil
}

// maySend asks urdmad for the state before a send is refused, because urdmad knows first when the peer
// establishes a connection. Posting to a failed queue pair is allowed: the work is flushed.
func (q *QP) maySend() error {
	if q.ctx.client.dead() {
		return q.ctx.client.endError()
	}
	if sendsIn(q.state.Load()) {
		return nil
	}
	attr, err := q.Query()
	if err != nil {
		return err
	}
	if !sendsIn(attr.QPState) {
		return ErrState
	}
	return nil
}

// sendsIn reports whether sends may be posted in a state: in SQD they wait, in SQE
// and ERR they are flushed.
func sendsIn(state uint32) bool {
	return state == abi.QPSRTS || state == abi.QPSSQD || state == abi.QPSSQE || state == abi.QPSErr
}

// PostSend posts one send work request. ErrQueueFull: poll completions first.
func (q *QP) PostSend(wr *SendWR) error {
	if err := q.maySend(); err != nil {
		return err
	}
	q.sending.Lock()
	if q.closed {
		q.sending.Unlock()
		return ErrClosed
	}
	if err := q.writeSend(wr); err != nil {
		q.sending.Unlock()
		return err
	}
	q.announce()
	return nil
}

// PostSends posts send work requests in order and notifies urdmad once. It returns how many were posted, and
// the error of the next one.
func (q *QP) PostSends(wrs []SendWR) (n int, err error) {
	if err := q.maySend(); err != nil {
		return 0, err
	}
	q.sending.Lock()
	if q.closed {
		q.sending.Unlock()
		return 0, ErrClosed
	}
	for n < len(wrs) {
		if err = q.writeSend(&wrs[n]); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		q.sending.Unlock()
		return 0, err
	}
	q.announce()
	return n, err
}

// announce publishes the slots written, rings the doorbell, and unlocks the send half. The shared pages are
// accessed under the lock, which Close takes before it unmaps them.
func (q *QP) announce() {
	q.ring.SQ.Publish()
	if q.bells.Ring(q.doorbell) {
		q.ctx.client.urdmad.Kick(q.worker)
		q.sending.Unlock()
		return
	}
	wish, _, core, alone := q.bells.Yield()
	q.sending.Unlock()
	if wish != 0 {
		receives := q.recvCQ
		if receives == nil {
			receives = q.sendCQ
		}
		q.yield.After(&q.sendCQ.yield, &receives.yield, core, yield.Alone(alone))
	}
}

// PostRecv posts one receive. Receives are used in order, one for each message; post them before the peer can
// send. A queue pair with an SRQ, or of type XRCSend or XRCRecv, has no receive queue of its own.
func (q *QP) PostRecv(wr *RecvWR) error {
	if q.ctx.client.dead() {
		return q.ctx.client.endError()
	}
	q.recvMutex.Lock()
	defer q.recvMutex.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.srq != nil || q.recvCQ == nil || len(wr.SGE) > q.ring.RQ.MaxSGE():
		return ErrWorkRequest
	case !q.ring.RQ.Write(wr.ID, wr.SGE):
		return ErrQueueFull
	}
	q.ring.RQ.Publish()
	if q.bells.Ring(q.doorbell) {
		q.ctx.client.urdmad.Kick(q.worker)
	}
	return nil
}
