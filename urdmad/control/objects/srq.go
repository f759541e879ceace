package objects

import (
	"errors"
	"fmt"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// SRQ is a shared receive queue with its ring.
type SRQ struct {
	control.Base
	Queue *qp.RecvQueue
	PD    *PD
	xrcd  *XRCD // its XRC domain, or nil
	ring  *memfd.Shared
	cap   abi.QuerySRQResponse // without srq_limit, which is in the queue
}

func (pd *PD) createSRQ(m *abi.CreateSRQRequest, r *control.Reply) error {
	x := pd.Session
	most := x.Limits()
	if m.MaxWR == 0 || m.MaxWR > most.MaxSRQWR || m.MaxSGE > most.MaxSRQSGE || m.SRQLimit > m.MaxWR {
		return fmt.Errorf("control: a shared receive queue with max_wr %d (1 to %d), max_sge %d (up to %d), srq_limit %d (up to max_wr): %w", m.MaxWR, most.MaxSRQWR, m.MaxSGE, most.MaxSRQSGE, m.SRQLimit, syscall.EINVAL)
	}
	o := &SRQ{PD: pd, cap: abi.QuerySRQResponse{MaxWR: m.MaxWR, MaxSGE: m.MaxSGE}}
	shared := qp.Shared{PD: pd.Number, Async: pd.Context.Async, Limit: m.SRQLimit}
	if err := nameQueue(x, m, o, &shared); err != nil {
		return err
	}
	resp := ring.SRQLayout(m.MaxWR, m.MaxSGE)
	bill := &account.Amounts{account.SharedQueues: 1, account.QueueBytes: uint64(resp.Bytes), account.Mappings: 1}
	mem, err := x.NewQueueMemory("urdma-srq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	o.ring, o.Queue = mem, qp.NewShared(shared, mem.Mem, &resp)
	x.Do(func() {
		resp.Handle = x.Add(o, bill)
		o.Queue.Shared().Handle = resp.Handle
		if o.xrcd != nil {
			x.Worker().Engine.QPs.AddQueue(o.Queue)
			resp.SRQNum = o.Queue.Shared().Number
			o.xrcd.users++
		}
	})
	pd.users++
	*r = control.Respond(&resp)
	r.Bring(mem)
	return nil
}

// sharedQueue returns the shared receive queue with a handle; nil for handle 0.
func sharedQueue(x *control.Session, handle uint32) (*qp.RecvQueue, error) {
	if handle == abi.NoHandle {
		return nil, nil
	}
	o, err := control.Find[*SRQ](x, handle)
	if err != nil {
		return nil, err
	}
	if o.xrcd != nil {
		return nil, fmt.Errorf("control: the shared receive queue is of an XRC domain: %w", syscall.EINVAL)
	}
	return o.Queue, nil
}

func (o *SRQ) modifySRQ(m *abi.ModifySRQRequest, _ *control.Reply) error {
	switch {
	case m.Mask&^abi.SRQMaskLimit != 0:
		return fmt.Errorf("control: attributes %#x of a shared receive queue, known: IBV_SRQ_LIMIT, %#x: %w", m.Mask,
			abi.SRQMaskLimit, syscall.EINVAL)
	case m.Mask == 0:
		return nil
	case m.SRQLimit > o.cap.MaxWR:
		return fmt.Errorf("control: srq_limit %d, max_wr is %d: %w", m.SRQLimit, o.cap.MaxWR, syscall.EINVAL)
	}
	o.Session.Do(func() { o.Queue.Shared().Limit = m.SRQLimit })
	return nil
}

// resizeSRQ moves the waiting receives to a ring of another size, and sets the limit if
// requested. It does both or neither.
func (o *SRQ) resizeSRQ(m *abi.ModifySRQRequest, r *control.Reply) error {
	x := o.Session
	if m.Mask&^(abi.SRQMaskLimit|abi.SRQMaskMaxWR) != 0 || m.MaxWR == 0 || m.MaxWR > x.Limits().MaxSRQWR {
		return fmt.Errorf("control: a shared receive queue of max_wr %d (1 to %d) by attributes %#x (known: IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT, %#x): %w", m.MaxWR, x.Limits().MaxSRQWR, m.Mask, abi.SRQMaskLimit|abi.SRQMaskMaxWR, syscall.EINVAL)
	}
	resp := ring.SRQLayout(m.MaxWR, o.cap.MaxSGE)
	bill := &account.Amounts{account.QueueBytes: uint64(resp.Bytes), account.Mappings: 1}
	mem, err := x.NewQueueMemory("urdma-srq", bill, int(resp.Bytes))
	if err != nil {
		return err
	}
	old := o.ring
	var moving *qp.Resizing
	x.Do(func() {
		limit := o.Queue.Shared().Limit
		if m.Mask&abi.SRQMaskLimit != 0 {
			limit = m.SRQLimit
		}
		if limit <= m.MaxWR {
			moving = o.Queue.Resize(mem.Mem, &resp)
		}
	})
	if moving == nil {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("control: a shared receive queue of max_wr %d holds fewer than are posted, or than its limit: %w",
			m.MaxWR, syscall.EINVAL)
	}
	x.Worker().Turns(func() (more bool) {
		if more = moving.Step(); !more {
			o.ring, o.cap.MaxWR = mem, m.MaxWR
			if m.Mask&abi.SRQMaskLimit != 0 {
				o.Queue.Shared().Limit = m.SRQLimit
			}
		}
		return more
	})
	old.Close()
	o.Resized(account.SharedQueues, bill)
	resp.Handle, resp.SRQNum = o.Handle, o.Queue.Shared().Number
	*r = control.Respond(&resp)
	r.Bring(mem)
	return nil
}

func (o *SRQ) querySRQ(_ *abi.HandleMessage, r *control.Reply) error {
	resp := o.cap
	o.Session.Do(func() { resp.SRQLimit = o.Queue.Shared().Limit })
	*r = control.Respond(&resp)
	return nil
}

func (o *SRQ) destroySRQ(*abi.HandleMessage, *control.Reply) error {
	busy := false
	o.Session.Do(func() {
		if busy = o.Queue.Shared().InUse(); !busy {
			o.leaveDomain()
			o.Remove()
		}
	})
	if busy {
		return fmt.Errorf("control: queue pairs use the shared receive queue: %w", syscall.EBUSY)
	}
	o.PD.users--
	o.ring.Close()
	return nil
}

// leaveDomain removes a shared receive queue from its XRC domain, if it has one; on the engine's
// thread.
func (o *SRQ) leaveDomain() {
	if o.xrcd != nil {
		o.Session.Worker().Engine.QPs.RemoveQueue(o.Queue)
		o.xrcd.users--
	}
}

// nameQueue puts a shared receive queue into an XRC domain.
func nameQueue(x *control.Session, m *abi.CreateSRQRequest, o *SRQ, shared *qp.Shared) error {
	switch m.SRQType {
	case abi.SRQTypeBasic:
		if m.XRCD != abi.NoHandle || m.CQ != abi.NoHandle {
			return fmt.Errorf("control: a basic shared receive queue has no XRC domain and no completion queue: %w",
				syscall.EINVAL)
		}
		return nil
	case abi.SRQTypeXRC:
	default:
		return fmt.Errorf("control: a shared receive queue of type %d, there are %d (basic) and %d (XRC): %w", m.SRQType,
			abi.SRQTypeBasic, abi.SRQTypeXRC, syscall.EOPNOTSUPP)
	}
	xrcd, err := control.Find[*XRCD](x, m.XRCD)
	cq, errCQ := control.Find[*CQ](x, m.CQ)
	if err := errors.Join(err, errCQ); err != nil {
		return err
	}
	o.xrcd = xrcd
	shared.Named = qp.Named{Domain: xrcd.domain.Domain, CQ: cq.CQ, Client: &x.Client().Client}
	return nil
}

// Rank implements control.Object.
func (o *SRQ) Rank() control.Rank { return control.RankSharedQueue }

// End implements control.Object.
func (o *SRQ) End() *memfd.Shared {
	o.leaveDomain()
	return o.ring
}
