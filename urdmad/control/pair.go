package control

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// qpObject is a queue pair with its rings.
type qpObject struct {
	created
	qp   *engine.QP
	pd   *pdObject
	ring *sharedMemory
}

func (x *Session) createQP(m *abi.CreateQPRequest, r *reply) error {
	pd, err := object[*pdObject](x, m.PD)
	if err != nil {
		return err
	}
	send, err := object[*cqObject](x, m.SendCQ)
	if err != nil {
		return err
	}
	recv, err := object[*cqObject](x, m.RecvCQ)
	if err != nil {
		return err
	}
	if err := x.checkPair(m); err != nil {
		return err
	}
	resp := ring.QPLayout(m.Cap)
	mem, err := newSharedMemory("urdma-qp", int(resp.Bytes))
	if err != nil {
		return err
	}
	q := &qpObject{pd: pd, ring: mem, qp: &engine.QP{Client: x.client, PD: pd.number, SendCQ: send.cq, RecvCQ: recv.cq,
		Async: pd.ctx.async, SigAll: m.SQSigAll != 0, Cap: resp.Cap, UserHandle: m.UserHandle}}
	q.qp.Ring.Init(mem.mem, &resp)
	x.do(func() {
		if err = x.s.roomOnPort(pd.ctx.dev); err != nil {
			return
		}
		if err = x.s.Engine.AddQP(q.qp, &resp); err == nil {
			q.qp.Handle = x.add(q)
			x.s.Devices[pd.ctx.dev].pairs++
		}
	})
	if err != nil {
		mem.close()
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	x.used.qps++
	pd.users++
	resp.Handle, resp.QPN, resp.Doorbell = q.qp.Handle, q.qp.QPN, uint32(q.qp.Doorbell)
	*r = respond(&resp, mem.fd)
	r.done = mem.closeFD
	return nil
}

func (x *Session) checkPair(m *abi.CreateQPRequest) error {
	c := &m.Cap
	switch l := x.s.limits().QueuePairs; {
	case m.QPType != abi.QPTypeRC || m.SRQ != abi.NoHandle || m.XRCD != abi.NoHandle || m.CreateFlags != 0 || m.SourceQPN != 0:
		return syscall.EOPNOTSUPP
	case c.MaxSendWR > maxQPWR || c.MaxRecvWR > maxQPWR || c.MaxSendSGE > engine.MaxSGE || c.MaxRecvSGE > engine.MaxSGE ||
		c.MaxInline > maxInline:
		return syscall.EINVAL
	case l > 0 && x.used.qps >= l:
		return overLimit("queue_pairs", uint64(l))
	}
	return nil
}

func (x *Session) modifyQP(m *abi.ModifyQPRequest, r *reply) error {
	q, err := object[*qpObject](x, m.Handle)
	if err != nil {
		return err
	}
	x.do(func() { err = x.s.Engine.ModifyQP(q.qp, m.Mask, &m.Attr) })
	if errors.Is(err, engine.ErrTransition) {
		return syscall.EINVAL
	}
	if err != nil {
		return err
	}
	return x.queryQP(&abi.HandleMessage{Handle: m.Handle}, r)
}

func (x *Session) queryQP(m *abi.HandleMessage, r *reply) error {
	q, err := object[*qpObject](x, m.Handle)
	if err != nil {
		return err
	}
	var resp abi.QueryQPResponse
	x.do(func() {
		resp.Attr, resp.Cap = q.qp.Attr, q.qp.Cap
		resp.Attr.QPState, resp.Attr.CurQPState = q.qp.State(), q.qp.State()
		if c := q.qp.Conn(); c != nil {
			resp.Attr.MaxRdAtomic, resp.Attr.MaxDestRdAtomic = uint32(c.ORD), uint32(c.IRD)
		}
		if q.qp.SigAll {
			resp.SQSigAll = 1
		}
	})
	*r = respond(&resp)
	return nil
}

func (x *Session) destroyQP(m *abi.HandleMessage, _ *reply) error {
	q, err := object[*qpObject](x, m.Handle)
	if err != nil {
		return err
	}
	x.do(func() {
		x.s.Engine.RemoveQP(q.qp)
		x.s.Devices[q.pd.ctx.dev].pairs--
		delete(x.objects, m.Handle)
	})
	x.used.qps--
	q.pd.users--
	q.ring.close()
	return nil
}
