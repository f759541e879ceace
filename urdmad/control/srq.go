package control

import (
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// srqObject is a shared receive queue with its ring.
type srqObject struct {
	created
	queue *qp.RecvQueue
	pd    *pdObject
	xrcd  *xrcdObject // of one in an XRC domain; else nil
	ring  *memfd.Shared
	cap   abi.QuerySRQResponse // its limit is the queue's
}

func createSRQ(x *Session, m *abi.CreateSRQRequest, r *reply) error {
	pd, err := object[*pdObject](x, m.PD)
	if err != nil {
		return err
	}
	if m.MaxWR == 0 || m.MaxWR > maxQPWR || m.MaxSGE > qp.MaxSGE || m.SRQLimit > m.MaxWR {
		return syscall.EINVAL
	}
	o := &srqObject{pd: pd, cap: abi.QuerySRQResponse{MaxWR: m.MaxWR, MaxSGE: m.MaxSGE}}
	shared := qp.Shared{PD: pd.number, Async: pd.ctx.async, Limit: m.SRQLimit}
	if err := x.nameQueue(m, o, &shared); err != nil {
		return err
	}
	resp := ring.SRQLayout(m.MaxWR, m.MaxSGE)
	bill := &account.Amounts{account.SharedQueues: 1, account.QueueBytes: uint64(resp.Bytes), account.Mappings: 1}
	mem, err := x.newQueueMemory("urdma-srq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	o.ring, o.queue = mem, qp.NewShared(shared, mem.Mem, &resp)
	x.do(func() {
		resp.Handle = x.add(o, bill)
		o.queue.Shared().Handle = resp.Handle
		if o.xrcd != nil {
			x.s.Engine.QPs.AddQueue(o.queue)
			resp.SRQNum = o.queue.Shared().Number
			o.xrcd.users++
		}
	})
	pd.users++
	*r = respond(&resp)
	r.bring(mem)
	return nil
}

// sharedQueue is the queue of a handle; nil for none.
func sharedQueue(x *Session, handle uint32) (*qp.RecvQueue, error) {
	if handle == abi.NoHandle {
		return nil, nil
	}
	o, err := object[*srqObject](x, handle)
	if err != nil {
		return nil, err
	}
	if o.xrcd != nil {
		return nil, syscall.EINVAL
	}
	return o.queue, nil
}

func modifySRQ(x *Session, m *abi.ModifySRQRequest, r *reply) error {
	o, err := object[*srqObject](x, m.Handle)
	switch {
	case err != nil:
		return err
	case m.Mask&^(abi.SRQMaskLimit|abi.SRQMaskMaxWR) != 0:
		return syscall.EINVAL
	case m.Mask&abi.SRQMaskMaxWR != 0:
		return x.resizeSRQ(o, m, r)
	case m.Mask&abi.SRQMaskLimit == 0:
		return nil
	case m.SRQLimit > o.cap.MaxWR:
		return syscall.EINVAL
	}
	x.do(func() { o.queue.Shared().Limit = m.SRQLimit })
	return nil
}

// resizeSRQ moves the receives that wait to a ring of another size, and sets the
// limit with it if that is asked for, too: both, or neither.
func (x *Session) resizeSRQ(o *srqObject, m *abi.ModifySRQRequest, r *reply) error {
	if m.MaxWR == 0 || m.MaxWR > maxQPWR {
		return syscall.EINVAL
	}
	resp := ring.SRQLayout(m.MaxWR, o.cap.MaxSGE)
	bill := &account.Amounts{account.QueueBytes: uint64(resp.Bytes), account.Mappings: 1}
	mem, err := x.newQueueMemory("urdma-srq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	old, fits := o.ring, false
	x.do(func() {
		limit := o.queue.Shared().Limit
		if m.Mask&abi.SRQMaskLimit != 0 {
			limit = m.SRQLimit
		}
		if fits = limit <= m.MaxWR && o.queue.Resize(mem.Mem, &resp); fits {
			o.queue.Shared().Limit, o.ring, o.cap.MaxWR = limit, mem, m.MaxWR
		}
	})
	if !fits {
		mem.Close()
		x.Give(bill)
		return syscall.EINVAL
	}
	old.Close()
	x.resized(m.Handle, account.SharedQueues, bill)
	resp.Handle, resp.SRQNum = m.Handle, o.queue.Shared().Number
	*r = respond(&resp)
	r.bring(mem)
	return nil
}

func querySRQ(x *Session, m *abi.HandleMessage, r *reply) error {
	o, err := object[*srqObject](x, m.Handle)
	if err != nil {
		return err
	}
	resp := o.cap
	x.do(func() { resp.SRQLimit = o.queue.Shared().Limit })
	*r = respond(&resp)
	return nil
}

func destroySRQ(x *Session, m *abi.HandleMessage, _ *reply) error {
	o, err := object[*srqObject](x, m.Handle)
	if err != nil {
		return err
	}
	busy := false
	x.do(func() {
		if busy = o.queue.Shared().InUse(); !busy {
			x.removeQueue(o)
			x.remove(m.Handle)
		}
	})
	if busy {
		return syscall.EBUSY
	}
	o.pd.users--
	o.ring.Close()
	return nil
}

// removeQueue takes a shared receive queue out of its XRC domain, if it has one; on
// the engine's thread.
func (x *Session) removeQueue(o *srqObject) {
	if o.xrcd != nil {
		x.s.Engine.QPs.RemoveQueue(o.queue)
		o.xrcd.users--
	}
}
