package control

import (
	"fmt"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// srqObject is a shared receive queue with its ring.
type srqObject struct {
	object
	queue *qp.RecvQueue
	pd    *pdObject
	xrcd  *xrcdObject // of one in an XRC domain; else nil
	ring  *memfd.Shared
	cap   abi.QuerySRQResponse // its limit is the queue's
}

func (pd *pdObject) createSRQ(m *abi.CreateSRQRequest, r *reply) error {
	x := pd.x
	most := x.most()
	if m.MaxWR == 0 || m.MaxWR > most.MaxSRQWR || m.MaxSGE > most.MaxSRQSGE || m.SRQLimit > m.MaxWR {
		return fmt.Errorf("control: a shared receive queue with max_wr %d (1 to %d), max_sge %d (up to %d), srq_limit %d (up to max_wr): %w", m.MaxWR, most.MaxSRQWR, m.MaxSGE, most.MaxSRQSGE, m.SRQLimit, syscall.EINVAL)
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
			x.w.Engine.QPs.AddQueue(o.queue)
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
func (x *Session) sharedQueue(handle uint32) (*qp.RecvQueue, error) {
	if handle == abi.NoHandle {
		return nil, nil
	}
	o, err := find[*srqObject](x, handle)
	if err != nil {
		return nil, err
	}
	if o.xrcd != nil {
		return nil, fmt.Errorf("control: the shared receive queue is of an XRC domain: %w", syscall.EINVAL)
	}
	return o.queue, nil
}

func (o *srqObject) modifySRQ(m *abi.ModifySRQRequest, _ *reply) error {
	switch {
	case m.Mask&^abi.SRQMaskLimit != 0:
		return fmt.Errorf("control: attributes %#x of a shared receive queue, known: IBV_SRQ_LIMIT, %#x: %w", m.Mask, abi.SRQMaskLimit, syscall.EINVAL)
	case m.Mask == 0:
		return nil
	case m.SRQLimit > o.cap.MaxWR:
		return fmt.Errorf("control: srq_limit %d, max_wr is %d: %w", m.SRQLimit, o.cap.MaxWR, syscall.EINVAL)
	}
	o.x.do(func() { o.queue.Shared().Limit = m.SRQLimit })
	return nil
}

// resizeSRQ moves the receives that wait to a ring of another size, and sets the
// limit with it if that is asked for, too: both, or neither.
func (o *srqObject) resizeSRQ(m *abi.ModifySRQRequest, r *reply) error {
	x := o.x
	if m.Mask&^(abi.SRQMaskLimit|abi.SRQMaskMaxWR) != 0 || m.MaxWR == 0 || m.MaxWR > x.most().MaxSRQWR {
		return fmt.Errorf("control: a shared receive queue of max_wr %d (1 to %d) by attributes %#x (known: IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT, %#x): %w", m.MaxWR, x.most().MaxSRQWR, m.Mask, abi.SRQMaskLimit|abi.SRQMaskMaxWR, syscall.EINVAL)
	}
	resp := ring.SRQLayout(m.MaxWR, o.cap.MaxSGE)
	bill := &account.Amounts{account.QueueBytes: uint64(resp.Bytes), account.Mappings: 1}
	mem, err := x.newQueueMemory("urdma-srq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	old := o.ring
	var moving *qp.Resizing
	x.do(func() {
		limit := o.queue.Shared().Limit
		if m.Mask&abi.SRQMaskLimit != 0 {
			limit = m.SRQLimit
		}
		if limit <= m.MaxWR {
			moving = o.queue.Resize(mem.Mem, &resp)
		}
	})
	if moving == nil {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("control: a shared receive queue of max_wr %d holds fewer than are posted, or than its limit: %w", m.MaxWR, syscall.EINVAL)
	}
	x.w.turns(func() (more bool) {
		if more = moving.Step(); !more {
			o.ring, o.cap.MaxWR = mem, m.MaxWR
			if m.Mask&abi.SRQMaskLimit != 0 {
				o.queue.Shared().Limit = m.SRQLimit
			}
		}
		return more
	})
	old.Close()
	o.resized(account.SharedQueues, bill)
	resp.Handle, resp.SRQNum = o.handle, o.queue.Shared().Number
	*r = respond(&resp)
	r.bring(mem)
	return nil
}

func (o *srqObject) querySRQ(_ *abi.HandleMessage, r *reply) error {
	resp := o.cap
	o.x.do(func() { resp.SRQLimit = o.queue.Shared().Limit })
	*r = respond(&resp)
	return nil
}

func (o *srqObject) destroySRQ(*abi.HandleMessage, *reply) error {
	busy := false
	o.x.do(func() {
		if busy = o.queue.Shared().InUse(); !busy {
			o.leaveDomain()
			o.remove()
		}
	})
	if busy {
		return fmt.Errorf("control: queue pairs use the shared receive queue: %w", syscall.EBUSY)
	}
	o.pd.users--
	o.ring.Close()
	return nil
}

// leaveDomain takes a shared receive queue out of its XRC domain, if it has one; on
// the engine's thread.
func (o *srqObject) leaveDomain() {
	if o.xrcd != nil {
		o.x.w.Engine.QPs.RemoveQueue(o.queue)
		o.xrcd.users--
	}
}
