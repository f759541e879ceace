package objects

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// XRCD is a client's handle of an XRC domain.
type XRCD struct {
	control.Base
	Context *Context
	domain  *control.XRCDomain
	file    *ancillary.File // if shared: kept open so that no other file gets its inode number
	users   int             // number of queues and queue pairs made with this handle
}

func (c *Context) openXRCD(m *abi.OpenXRCDRequest, r *control.Reply) (err error) {
	x := c.Session
	if m.OFlags&^(unix.O_CREAT|unix.O_EXCL) != 0 {
		return fmt.Errorf("control: oflags %#x of an XRC domain, known: O_CREAT and O_EXCL: %w", m.OFlags, syscall.EINVAL)
	}
	key := control.DomainKey{Dev: c.Dev}
	bill := &account.Amounts{account.Domains: 1}
	f := x.TakeFile()
	if f != nil {
		if err = identify(&key, int(f.Fd())); err != nil {
			x.Closer().Close(f)
			return err
		}
		bill[account.Descriptors] = 1
	}
	if err := x.Take(bill); err != nil {
		closeXRC(x, f)
		return err
	}
	d := &control.XRCDomain{Domain: qp.NewDomain()}
	if f != nil {
		if d, err = x.Server().Domains.Enter(key, m.OFlags, x.Owner.UID, x.Worker(), x.Server().Workers); err != nil {
			closeXRC(x, f)
			x.Give(bill)
			return err
		}
	}
	var resp abi.HandleMessage
	x.Do(func() { resp.Handle = x.Add(&XRCD{Context: c, domain: d, file: f}, bill) })
	c.users++
	*r = control.Respond(&resp)
	return nil
}

// closeXRC closes a domain's file, if it has one.
func closeXRC(x *control.Session, f *ancillary.File) {
	if f != nil {
		x.Closer().Close(f)
	}
}

// identify puts the identity of a file into key, without asking a file server, which may never answer.
// Like the kernel it refuses a descriptor without access to the file (O_PATH), because a client
// that may not open the file must not join its domain.
func identify(key *control.DomainKey, fd int) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_PATH != 0 {
		return syscall.EBADF
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err != nil {
		return fmt.Errorf("control: file of an XRC domain: %w", err)
	}
	key.Device, key.Inode = uint64(st.Dev_major)<<32|uint64(st.Dev_minor), st.Ino
	return nil
}

func (o *XRCD) closeXRCD(*abi.HandleMessage, *control.Reply) error {
	if o.users > 0 {
		return fmt.Errorf("control: the XRC domain still has %d objects: %w", o.users, syscall.EBUSY)
	}
	o.Session.Do(o.Remove)
	o.Session.Server().Domains.Leave(o.domain)
	closeXRC(o.Session, o.file)
	o.Context.users--
	return nil
}

// End implements control.Object.
func (o *XRCD) End() *memfd.Shared {
	o.Session.Server().Domains.Leave(o.domain)
	closeXRC(o.Session, o.file)
	return nil
}

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
	bill := &account.Amounts{account.SharedQueues: 1}
	mem, err := x.NewQueueMemory("urdma-srq", bill, resp.Bytes)
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
	bill := &account.Amounts{} // the queue itself is already counted
	mem, err := x.NewQueueMemory("urdma-srq", bill, resp.Bytes)
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
