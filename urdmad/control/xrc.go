package control

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// xrcDomain is an XRC domain. It belongs to one client, or is shared by those clients of one
// worker that can open its file.
type xrcDomain struct {
	*qp.Domain
	shared *sharing // nil: it belongs to one client
}

// sharing is the additional state of a shared domain; the lock in sharedDomains guards it.
type sharing struct {
	key   xrcKey
	w     *Worker // worker of all clients of the domain
	uid   int     // user ID of the first client
	users int     // number of handles, of all clients
}

// sharedDomains has the shared XRC domains of all workers.
type sharedDomains struct {
	mu sync.Mutex
	of map[xrcKey]*xrcDomain
}

// fileID identifies a file by properties that all processes see alike.
type fileID struct{ device, inode uint64 }

// XRCD is a client's handle of an XRC domain.
type XRCD struct {
	object
	Context *Context
	domain  *xrcDomain
	file    *os.File // if shared: kept open so that no other file gets its inode number
	users   int      // number of queues and queue pairs made with this handle
}

type xrcKey struct {
	dev  int
	file fileID
}

func (c *Context) openXRCD(m *abi.OpenXRCDRequest, r *Reply) (err error) {
	x := c.x
	if m.OFlags&^(unix.O_CREAT|unix.O_EXCL) != 0 {
		return fmt.Errorf("control: oflags %#x of an XRC domain, known: O_CREAT and O_EXCL: %w", m.OFlags, syscall.EINVAL)
	}
	key := xrcKey{dev: c.Dev}
	bill := &account.Amounts{account.Domains: 1}
	f := x.takeFile()
	if f != nil {
		if key.file, err = identify(int(f.Fd())); err != nil {
			x.Closer().Close(f)
			return err
		}
		bill[account.Descriptors] = 1
	}
	if err := x.Take(bill); err != nil {
		x.closeXRC(f)
		return err
	}
	d := &xrcDomain{Domain: qp.NewDomain()}
	if f != nil {
		if d, err = x.s.domains.enter(x, key, m.OFlags); err != nil {
			x.closeXRC(f)
			x.Give(bill)
			return err
		}
	}
	var resp abi.HandleMessage
	x.Do(func() { resp.Handle = x.add(&XRCD{Context: c, domain: d, file: f}, bill) })
	c.users++
	*r = Respond(&resp)
	return nil
}

// closeXRC closes a domain's file, if it has one.
func (x *Session) closeXRC(f *os.File) {
	if f != nil {
		x.Closer().Close(f)
	}
}

// identify returns the identity of a file without asking a file server, which may never answer.
// Like the kernel it refuses a descriptor without access to the file (O_PATH), because a client
// that may not open the file must not join its domain.
func identify(fd int) (fileID, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_PATH != 0 {
		return fileID{}, syscall.EBADF
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err != nil {
		return fileID{}, fmt.Errorf("control: file of an XRC domain: %w", err)
	}
	return fileID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}, nil
}

// enter finds or makes the domain of a file, and counts one handle. A domain belongs to one
// worker, so a client of another worker is refused.
func (s *sharedDomains) enter(x *Session, key xrcKey, flags uint32) (*xrcDomain, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of[key]
	switch {
	case d == nil && flags&unix.O_CREAT == 0:
		return nil, fmt.Errorf("control: no O_CREAT, and the file has no XRC domain: %w", syscall.EAGAIN)
	case d == nil:
		d = &xrcDomain{qp.NewDomain(), &sharing{key: key, w: x.w, uid: x.Owner.UID}}
		if s.of == nil {
			s.of = map[xrcKey]*xrcDomain{}
		}
		s.of[key] = d
	case flags&unix.O_EXCL != 0:
		return nil, fmt.Errorf("control: O_EXCL, and the file has an XRC domain: %w", syscall.EINVAL)
	case d.shared.w != x.w:
		return nil, fmt.Errorf("control: the XRC domain has clients of worker %d, and this program belongs to worker %d; programs of user %d that start while the domain is open belong to the former: %w",
			slices.Index(x.s.Workers, d.shared.w), slices.Index(x.s.Workers, x.w), d.shared.uid, syscall.EBUSY)
	}
	d.shared.users++
	return d, nil
}

// leave undoes one enter.
func (s *sharedDomains) leave(d *xrcDomain) {
	if d.shared == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.shared.users--; d.shared.users == 0 {
		delete(s.of, d.shared.key)
	}
}

// workerOf returns the worker of the shared domains that a user has opened, or nil.
func (s *sharedDomains) workerOf(uid int) *Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.of {
		if d.shared.uid == uid {
			return d.shared.w
		}
	}
	return nil
}

func (o *XRCD) closeXRCD(*abi.HandleMessage, *Reply) error {
	if o.users > 0 {
		return fmt.Errorf("control: the XRC domain still has %d objects: %w", o.users, syscall.EBUSY)
	}
	o.x.Do(o.remove)
	o.x.s.domains.leave(o.domain)
	o.x.closeXRC(o.file)
	o.Context.users--
	return nil
}

// createTarget makes a queue pair of type XRC_RECV. It belongs to its domain, and to the clients
// that have made or opened it.
func (x *Session) createTarget(m *abi.CreateQPRequest, r *Reply) error {
	xrcd, err := Find[*XRCD](x, m.XRCD)
	if err != nil {
		return err
	}
	if m.PD != abi.NoHandle || m.SendCQ != abi.NoHandle || m.RecvCQ != abi.NoHandle || m.SRQ != abi.NoHandle ||
		m.CreateFlags != 0 || m.SourceQPN != 0 {
		return fmt.Errorf("control: a queue pair of type XRC_RECV has no protection domain, queues, flags or source number of its own: %w", syscall.EINVAL)
	}
	bill := &account.Amounts{account.QueuePairs: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	var resp abi.QPResponse
	q := qp.New(qp.Config{Type: m.QPType, Client: &x.client.Client, Domain: xrcd.domain.Domain,
		Ports: uint32(x.s.Ports(xrcd.Context.Dev))}, nil, &resp)
	o := &QP{QP: q, Context: xrcd.Context, xrcd: xrcd}
	dev := &x.s.Devices[xrcd.Context.Dev]
	x.Do(func() {
		if err = dev.pairs.Take(&x.Account, xrcd.Context.Dev, dev.Of, dev.MaxQP); err != nil {
			return
		}
		x.w.Engine.QPs.Add(q)
		x.refer(o, bill)
	})
	if err != nil {
		x.Give(bill)
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	resp.Handle, resp.QPN = o.target.Handle, q.QPN
	*r = Respond(&resp)
	return nil
}

// refer gives a client a handle of a target queue pair; on the engine's thread.
func (x *Session) refer(o *QP, bill *account.Amounts) {
	o.target = &qp.Target{Async: o.Context.Async, UID: x.Owner.UID}
	o.target.Handle = x.add(o, bill)
	o.QP.References.Add(o.target)
	o.xrcd.users++
}

// openQP gives a client a handle of an existing target queue pair.
func (xrcd *XRCD) openQP(m *abi.OpenQPRequest, r *Reply) error {
	x := xrcd.x
	bill := &account.Amounts{account.QueuePairs: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &QP{Context: xrcd.Context, xrcd: xrcd}
	x.Do(func() {
		if o.QP = x.w.Engine.QPs.Target(xrcd.domain.Domain, m.QPNum); o.QP != nil {
			x.refer(o, bill)
		}
	})
	if o.QP == nil {
		x.Give(bill)
		return fmt.Errorf("control: the XRC domain has no queue pair %06x for receiving: %w", m.QPNum, syscall.EINVAL)
	}
	*r = Respond(&abi.HandleMessage{Handle: o.target.Handle})
	return nil
}

// removeQP removes a client's reference to a queue pair, and the queue pair with its last
// reference; on the engine's thread. A target queue pair counts for the user with the oldest
// reference.
func (x *Session) removeQP(o *QP) {
	pairs := &x.s.Devices[o.Context.Dev].pairs
	if o.target == nil {
		x.w.Engine.RemoveQP(x.client, o.QP, o.bell)
		x.s.gone(x, o.QP)
		pairs.Give(x.Owner.UID)
		return
	}
	oldest := o.QP.References[0].UID
	if o.QP.References.Remove(o.target) {
		pairs.Give(oldest)
		x.w.Engine.QPs.Remove(o.QP)
		if maker := x.w.SessionOf(o.QP.Client); maker != nil {
			x.s.gone(maker, o.QP)
		}
	} else {
		pairs.Pass(oldest, o.QP.References[0].UID)
	}
}

// nameQueue puts a shared receive queue into an XRC domain.
func (x *Session) nameQueue(m *abi.CreateSRQRequest, o *SRQ, shared *qp.Shared) error {
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
	xrcd, err := Find[*XRCD](x, m.XRCD)
	cq, errCQ := Find[*CQ](x, m.CQ)
	if err := errors.Join(err, errCQ); err != nil {
		return err
	}
	o.xrcd = xrcd
	shared.Named = qp.Named{Domain: xrcd.domain.Domain, CQ: cq.CQ, Client: &x.client.Client}
	return nil
}
