package verbs

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/verbs/session"
	"urdma/verbs/yield"
)

// QPOptions has the type and sizes of a queue pair (ibv_create_qp(3)). Zero values mean defaults.
type QPOptions struct {
	Type    QPType // default RC
	SendWR  int    // outstanding send work requests; default 128
	RecvWR  int    // outstanding receives; default 128
	SendSGE int    // elements of a send work request; default 4
	RecvSGE int    // elements of a receive; default 4
	Inline  int    // bytes of inline data; default: as much as fits into a slot with SendSGE elements
	SigAll  bool   // every send work request has a completion
	// shared receive queue, used instead of a receive queue of its own; RecvWR and RecvSGE are ignored then
	SRQ *SRQ
	// XRC is the domain for type XRCRecv, for which all other options are ignored.
	XRC *XRCDomain
}

func orDefault(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

func (o *QPOptions) fill() {
	if o.Type == 0 {
		o.Type = RC
	}
	o.SendWR, o.RecvWR = orDefault(o.SendWR, 128), orDefault(o.RecvWR, 128)
	o.SendSGE, o.RecvSGE = orDefault(o.SendSGE, 4), orDefault(o.RecvSGE, 4)
	if o.SRQ != nil || o.Type == XRCSend {
		o.RecvWR, o.RecvSGE = 0, 0
	}
}

// receives returns how many receives may complete before one is polled.
func (o *QPOptions) receives() int {
	if o.SRQ != nil {
		return int(o.SRQ.maxWR.Load())
	}
	return o.RecvWR
}

// QPAttr are a queue pair's attributes, struct ibv_qp_attr; see verbs/abi.
type QPAttr = abi.QPAttr

// QP is a queue pair (ibv_create_qp(3)).
type QP struct {
	kind           QPType
	ctx            *Context
	pd             *PD  // nil for type XRCRecv
	sendCQ, recvCQ *CQ  // nil if the type has no such queue
	srq            *SRQ // may be nil
	handle         uint32
	pair           completionPair // data shared with its completion queues
	worker         int            // number of urdmad's worker that serves the queues
	doorbell       int
	bells          ring.ClientBells
	state          atomic.Uint32 // the last known state; urdmad may have a newer one
	yield          yield.Post
	maxMessage     uint64

	sending   sync.Mutex // guards the send half of ring and closed
	recvMutex sync.Mutex // guards the receive half of ring and closed
	closed    bool
	ring      ring.ClientQP
	mem       []byte
}

// CreateQP makes a queue pair that receives at once and sends after it was connected or, for type UD, after
// StartDatagrams. Type XRCSend does not receive and has no recvCQ. The error is EOPNOTSUPP for a type that
// package verbs does not support.
func (p *PD) CreateQP(sendCQ, recvCQ *CQ, o QPOptions) (*QP, error) {
	return p.createQP(context.Background(), sendCQ, recvCQ, o)
}

func (p *PD) createQP(ctx context.Context, sendCQ, recvCQ *CQ, o QPOptions) (*QP, error) {
	c := p.ctx.client
	o.fill()
	switch o.Type {
	case RC, UC, UD, XRCSend:
	case XRCRecv:
		return o.target(ctx, p.ctx.device)
	default:
		return nil, fmt.Errorf("verbs: %v: %w", o.Type, syscall.EOPNOTSUPP)
	}
	if sendCQ == nil || (recvCQ == nil) != (o.Type == XRCSend) {
		return nil, fmt.Errorf("verbs: completion queues of a queue pair of type %v: %w", o.Type, syscall.EINVAL)
	}
	for _, v := range []int{o.SendWR, o.RecvWR, o.SendSGE, o.RecvSGE, o.Inline} {
		if v < 0 || v > 1<<20 {
			return nil, fmt.Errorf("verbs: queue pair with a limit of %d: %w", v, syscall.EINVAL)
		}
	}
	req := abi.CreateQPRequest{PD: p.handle, QPType: uint32(o.Type), SendCQ: sendCQ.handle,
		Cap: abi.QPCap{MaxSendWR: uint32(o.SendWR), MaxRecvWR: uint32(o.RecvWR), MaxSendSGE: uint32(o.SendSGE),
			MaxRecvSGE: uint32(o.RecvSGE), MaxInline: uint32(o.Inline)}, UserHandle: c.pairs.Add(1)}
	if recvCQ != nil {
		req.RecvCQ = recvCQ.handle
	}
	if o.SRQ != nil {
		if req.SRQ = o.SRQ.handle; o.SRQ.pd.ctx.client != c {
			return nil, fmt.Errorf("verbs: queue pair on another client's shared receive queue: %w", syscall.EINVAL)
		}
	}
	if o.SigAll {
		req.SQSigAll = 1
	}
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.QPResponse
	fds, err := callContext(ctx, c, abi.CreateQP, &req, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	q := &QP{kind: o.Type, ctx: p.ctx, pd: p, sendCQ: sendCQ, recvCQ: recvCQ, srq: o.SRQ, handle: resp.Handle,
		maxMessage: p.ctx.device.maxMessage(o.Type),
		pair:       completionPair{ID: req.UserHandle, QPN: resp.QPN, Shared: o.SRQ != nil}}
	if q.mem, err = mapQP(&resp, fds[0], c.urdmad.Workers); err == nil {
		q.attach(&resp, o.SigAll)
		err = q.ready(ctx)
	}
	if err != nil {
		// the first error is the one to return
		session.Undo(ctx, func() { _ = c.callHandle(abi.DestroyQP, resp.Handle) })
		session.Unmap(q.mem)
		return nil, err
	}
	return q, nil
}

// target makes a queue pair of type XRCRecv on a device.
func (o *QPOptions) target(ctx context.Context, device *Device) (*QP, error) {
	if o.XRC == nil || o.XRC.ctx.client != device.client || o.XRC.ctx.device.number != device.number {
		return nil, fmt.Errorf("verbs: queue pair of type %v without an XRC domain of %s: %w", o.Type, device.Name,
			syscall.EINVAL)
	}
	return o.XRC.createQP(ctx)
}

// attach uses the mapped queues.
func (q *QP) attach(r *abi.QPResponse, sigAll bool) {
	q.ring.Init(q.mem, r, sigAll)
	q.pair.Ring = &q.ring
	q.bells.Init(q.ctx.client.urdmad.Bells, int(r.Worker))
	q.worker, q.doorbell = int(r.Worker), int(r.Doorbell)
}

// ready moves the queue pair to INIT, in which receives can be posted, and enters it into the tables.
func (q *QP) ready(ctx context.Context) error {
	attr, mask := initial(q.kind)
	attr.PortNum = uint32(q.ctx.device.Port)
	if err := q.modify(ctx, &attr, mask); err != nil {
		return err
	}
	q.sendCQ.join(q, true)
	q.recvCQ.join(q, false)
	q.ctx.client.qps.Add(q.handle, q)
	return nil
}

// initial returns the attributes with which a queue pair of a type moves to INIT. For datagrams the Q_Key is
// set before any can arrive, see StartDatagrams.
func initial(kind QPType) (attr QPAttr, mask uint32) {
	attr, mask = QPAttr{QPState: abi.QPSInit}, abi.QPMaskState|abi.QPMaskPKeyIndex|abi.QPMaskPort
	switch kind {
	case UD:
		return attr, mask | abi.QPMaskQKey
	case UC:
		attr.QPAccessFlags = abi.AccessLocalWrite | abi.AccessRemoteWrite
	default:
		attr.QPAccessFlags = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic
	}
	return attr, mask | abi.QPMaskAccessFlags
}

// Modify changes the attributes named in mask, such as abi.QPMaskState (ibv_modify_qp(3)). A move to
// abi.QPSErr flushes all posted work and ends the connection. Moves to RTR and RTS connect the queue pair by
// number; after Dial and Accept they are not needed.
func (q *QP) Modify(attr *QPAttr, mask uint32) error {
	return q.modify(context.Background(), attr, mask)
}

func (q *QP) modify(ctx context.Context, attr *QPAttr, mask uint32) error {
	var resp abi.QueryQPResponse
	req := abi.ModifyQPRequest{Handle: q.handle, Mask: mask, Attr: *attr}
	if _, err := callContext(ctx, q.ctx.client, abi.ModifyQP, &req, &resp, -1, 0); err != nil {
		return err
	}
	q.state.Store(resp.Attr.QPState)
	if mask&abi.QPMaskState != 0 && attr.QPState == abi.QPSReset {
		q.forget()
	}
	return nil
}

// forget follows a move to RESET: posted work and its completions are discarded.
func (q *QP) forget() {
	q.sendCQ.drop(q)
	q.recvCQ.drop(q)
	q.sending.Lock()
	q.recvMutex.Lock()
	q.ring.Reset()
	q.recvMutex.Unlock()
	q.sending.Unlock()
}

// Query reads the attributes (ibv_query_qp(3)).
func (q *QP) Query() (QPAttr, error) {
	var resp abi.QueryQPResponse
	if _, err := call(q.ctx.client, abi.QueryQP, &abi.HandleMessage{Handle: q.handle}, &resp, -1, 0); err != nil {
		return QPAttr{}, err
	}
	q.state.Store(resp.Attr.QPState)
	return resp.Attr, nil
}

// Type returns the queue pair's type.
func (q *QP) Type() QPType { return q.kind }

// QPN returns the queue pair's number.
func (q *QP) QPN() uint32 { return q.pair.QPN }

// PD returns the domain whose memory the queue pair can use; nil for type XRCRecv.
func (q *QP) PD() *PD { return q.pd }

// SendCQ returns the completion queue for sends; nil for type XRCRecv.
func (q *QP) SendCQ() *CQ { return q.sendCQ }

// RecvCQ returns the completion queue for receives; nil for types XRCSend and XRCRecv.
func (q *QP) RecvCQ() *CQ { return q.recvCQ }

// SRQ returns the shared receive queue; nil if the queue pair has its own receive queue.
func (q *QP) SRQ() *SRQ { return q.srq }

// MaxInline returns the number of bytes of inline data that a send may have.
func (q *QP) MaxInline() int { return q.ring.SQ.MaxInline() }

// Close destroys the queue pair (ibv_destroy_qp(3)): its connection ends, its posted work and unpolled
// completions are discarded.
func (q *QP) Close() error {
	c := q.ctx.client
	if err := c.destroy(abi.DestroyQP, q.handle); err != nil {
		return err
	}
	c.qps.Remove(q.handle)
	q.release()
	return nil
}

func (q *QP) release() {
	q.sending.Lock()
	q.recvMutex.Lock()
	already := q.closed
	q.closed = true
	q.recvMutex.Unlock()
	q.sending.Unlock()
	if already {
		return
	}
	q.sendCQ.leave(q)
	if q.recvCQ != q.sendCQ {
		q.recvCQ.leave(q)
	}
	session.Unmap(q.mem) // no post or poll uses the memory after this
}
