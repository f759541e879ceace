package objects

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// XRCD is a client's handle of an XRC domain.
type XRCD struct {
	control.Base
	Context *Context
	domain  *control.XRCDomain
	file    *os.File // if shared: kept open so that no other file gets its inode number
	users   int      // number of queues and queue pairs made with this handle
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
func closeXRC(x *control.Session, f *os.File) {
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
