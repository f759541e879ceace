package objects

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Context is an open device.
type Context struct {
	control.Base
	control.Opening
	users int
}

// PD is a protection domain. Its number is unique among all clients.
type PD struct {
	control.Base
	Number  uint64
	Context *Context
	users   int
}

func openDevice(x *control.Session, m *abi.OpenDeviceRequest, r *control.Reply) error {
	if _, err := x.Device(m.Device); err != nil {
		return err
	}
	var resp abi.HandleMessage
	async, bill, err := x.NewEvents(account.Contexts, r)
	if err != nil {
		return err
	}
	r.Body = abi.Bytes(&resp)
	x.Do(func() {
		c := &Context{Opening: control.Opening{Dev: x.Server().First(int(m.Device)), Async: async}}
		resp.Handle = x.Add(c, bill)
		x.Openings = append(x.Openings, &c.Opening)
	})
	return nil
}

func (c *Context) closeDevice(*abi.HandleMessage, *control.Reply) error {
	if c.users > 0 {
		return fmt.Errorf("control: %d objects of the device are still open: %w", c.users, syscall.EBUSY)
	}
	c.Session.Do(func() {
		c.Async.Close()
		c.Session.Openings = slices.DeleteFunc(c.Session.Openings, func(o *control.Opening) bool { return o == &c.Opening })
		c.Remove()
	})
	return nil
}

// End implements control.Object.
func (c *Context) End() *memfd.Shared {
	c.Async.Close()
	return nil
}

// lastPD is the number of the newest protection domain, counted over all clients.
var lastPD atomic.Uint64

func (c *Context) allocPD(_ *abi.HandleMessage, r *control.Reply) error {
	bill := &account.Amounts{account.Domains: 1}
	if err := c.Session.Take(bill); err != nil {
		return err
	}
	c.users++
	resp := abi.HandleMessage{}
	c.Session.Do(func() { resp.Handle = c.Session.Add(&PD{Number: lastPD.Add(1), Context: c}, bill) })
	*r = control.Respond(&resp)
	return nil
}

func (p *PD) deallocPD(*abi.HandleMessage, *control.Reply) error {
	if p.users > 0 {
		return fmt.Errorf("control: the protection domain still has %d objects: %w", p.users, syscall.EBUSY)
	}
	p.Context.users--
	p.Session.Do(p.Remove)
	return nil
}

var errNoDescriptor = errors.New("control: the request came without its descriptor")

// File is memory shared by ADD_FILE; the mem.Space owns the descriptor.
type File struct{ control.Base }

func addFile(x *control.Session, _ *abi.Header, r *control.Reply) error {
	f := x.TakeFile()
	if f == nil {
		return fmt.Errorf("%w: %w", errNoDescriptor, syscall.EBADF)
	}
	return shareFile(x, f, r)
}

func shareFile(x *control.Session, f *ancillary.File, r *control.Reply) error {
	if !sealed(f) {
		x.Closer().Close(f)
		return fmt.Errorf("%w: %w", mem.ErrNotSealed, syscall.EINVAL)
	}
	bill := &account.Amounts{account.Files: 1, account.Descriptors: 1}
	if err := x.Take(bill); err != nil {
		f.Close()
		return err
	}
	var resp abi.HandleMessage
	o := &File{}
	x.Do(func() { resp.Handle = x.Add(o, bill) })
	if err := x.Client().Space.AddFile(resp.Handle, f.OS("memory of a client")); err != nil {
		x.Do(o.Remove)
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	*r = control.Respond(&resp)
	return nil
}

// sealed reports whether a file is a memfd that its owner cannot shrink, the only kind of file
// that ADD_FILE accepts.
func sealed(f *ancillary.File) bool {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && seals&unix.F_SEAL_SHRINK != 0
}
