package control

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/engine"
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// errVersion is answered with our version, so that the client can say both.
var errVersion = fmt.Errorf("control: the client speaks another version of the protocol: %w", syscall.EPROTO)

// What every device can do.
const (
	maxQPWR   = 16384
	maxCQE    = 1 << 20
	maxInline = 960
	// One worker raises the completion events of all queues.
	compVectors = 1
)

// contextObject is an opened device.
type contextObject struct {
	created
	dev   int
	async *engine.EventSocket
	users int
}

// pdObject is a protection domain; its number is unique over all clients.
type pdObject struct {
	created
	number uint64
	ctx    *contextObject
	users  int
}

func (x *Session) hello(m *abi.HelloRequest, r *reply) error {
	if x.ready {
		return syscall.EINVAL
	}
	resp := abi.HelloResponse{ABIVersion: abi.Version, NumDevices: uint32(len(x.s.Devices)),
		DoorbellBytes: uint32(abi.Size[abi.Doorbells]()), Workers: 1}
	copy(resp.SysfsPath[:len(resp.SysfsPath)-1], x.s.Sysfs)
	*r = respond(&resp)
	if m.ABIVersion != abi.Version {
		return errVersion
	}
	x.name = commandName(m.Command[:], m.PID)
	if !x.admitted { // else an earlier HELLO failed later on
		if err := x.s.admit(); err != nil {
			return err
		}
		x.admitted = true
	}
	bells, err := newSharedMemory("urdma-doorbells", abi.Size[abi.Doorbells]())
	if err != nil {
		return err
	}
	x.bells = bells
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	if err := x.s.Watch(ours); err != nil {
		_, _ = unix.Close(ours), unix.Close(theirs)
		return err
	}
	x.kick = ours
	x.space = mem.NewSpace(x.take())
	x.client = &engine.Client{ID: x.id, Name: x.name, Space: x.space, Fault: func(error) { go x.conn.Close() }}
	x.owner.name, x.owner.line = cString(m.Command[:]), commandLine(x.owner.pid)
	x.do(func() {
		x.s.Engine.AddClient(x.client, bells.mem)
		x.owner.since = x.s.Engine.Now()
		x.s.attached = append(x.s.attached, x)
	})
	x.ready = true
	x.s.Log.Debug("client connected", "client", x.name)
	r.fds = []int{bells.fd, theirs}
	r.done = func() {
		_ = unix.Close(theirs) // the client has its copy
		bells.closeFD()
	}
	return nil
}

// socketPair makes a pair on which events travel one message at a time; our end
// never blocks.
func socketPair() (ours, theirs int, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("control: socketpair: %w", err)
	}
	_ = unix.SetNonblock(p[0], true) // every send has MSG_DONTWAIT as well
	return p[0], p[1], nil
}

// newEvents makes an event socket and puts the client's end into r.
func newEvents(r *reply) (*engine.EventSocket, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	r.fds = append(r.fds, theirs)
	r.done = func() { _ = unix.Close(theirs) } // the client has its copy
	return engine.NewEventSocket(ours), nil
}

func (x *Session) device(n uint32) (*Device, error) {
	if n >= uint32(len(x.s.Devices)) {
		return nil, syscall.ENODEV
	}
	return &x.s.Devices[n], nil
}

func (x *Session) queryDevice(m *abi.QueryDeviceRequest, r *reply) error {
	d, err := x.device(m.Device)
	if err != nil {
		return err
	}
	shown := d.Personality
	if m.Transport != abi.TransportDefault {
		shown = personality.Numbered(m.Transport)
	}
	if shown == nil {
		return fmt.Errorf("control: no transport has the number %d: %w", m.Transport, syscall.EINVAL)
	}
	v := abi.Device{Addr: abi.AddrFrom4(d.IP, 0), PrefixLength: uint32(d.PrefixLen), MAC: d.MAC,
		MTU: uint32(d.MTU), MaxQP: uint32(d.MaxQP), MaxQPWR: maxQPWR,
		MaxSGE: engine.MaxSGE, MaxSGERd: engine.MaxSGE, MaxInline: maxInline, MaxCQ: uint32(x.s.limits().CompletionQueues),
		MaxCQE: maxCQE, MaxMR: uint32(x.s.limits().MemoryRegions), MaxPD: uint32(x.s.limits().ProtectionDomains),
		MaxRdAtom: uint32(x.s.MaxReads), NumCompVectors: compVectors, Version: x.s.Version, MaxMRSize: x.s.limits().RegisteredBytes,
		MaxMsg: engine.MaxMessage}
	shown.Describe(&personality.Port{MAC: d.MAC, Addr: netip.AddrFrom4(d.IP)}, &v)
	copy(v.Name[:len(v.Name)-1], d.Name)
	if d.Link() {
		v.LinkUp = 1
	}
	*r = respond(&v)
	return nil
}

func (x *Session) openDevice(m *abi.OpenDeviceRequest, r *reply) error {
	if _, err := x.device(m.Device); err != nil {
		return err
	}
	var resp abi.HandleMessage
	async, err := newEvents(r)
	if err != nil {
		return err
	}
	r.body = abi.Bytes(&resp)
	x.do(func() { resp.Handle = x.add(&contextObject{dev: int(m.Device), async: async}) })
	return nil
}

func (x *Session) closeDevice(m *abi.HandleMessage, _ *reply) error {
	c, err := object[*contextObject](x, m.Handle)
	if err != nil {
		return err
	}
	if c.users > 0 {
		return syscall.EBUSY
	}
	x.do(func() {
		c.async.Close()
		delete(x.objects, m.Handle)
	})
	return nil
}

var nextPD = pdCounter()

// pdCounter numbers protection domains over all clients.
func pdCounter() func() uint64 {
	ch := make(chan uint64, 1)
	ch <- 1
	return func() uint64 {
		n := <-ch
		ch <- n + 1
		return n
	}
}

func (x *Session) allocPD(m *abi.HandleMessage, r *reply) error {
	c, err := object[*contextObject](x, m.Handle)
	if err != nil {
		return err
	}
	if l := x.s.limits().ProtectionDomains; l > 0 && x.used.pds >= l {
		return overLimit("protection_domains", uint64(l))
	}
	x.used.pds++
	c.users++
	resp := abi.HandleMessage{}
	x.do(func() { resp.Handle = x.add(&pdObject{number: nextPD(), ctx: c}) })
	*r = respond(&resp)
	return nil
}

func (x *Session) deallocPD(m *abi.HandleMessage, _ *reply) error {
	p, err := object[*pdObject](x, m.Handle)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return syscall.EBUSY
	}
	x.used.pds--
	p.ctx.users--
	x.do(func() { delete(x.objects, m.Handle) })
	return nil
}

var errNoDescriptor = errors.New("control: the request came without its descriptor")

// fileObject is memory shared by ADD_FILE; the Space owns the descriptor.
type fileObject struct{}

func (x *Session) addFile(_ *abi.Header, r *reply) error {
	f := x.take()
	if f == nil {
		return fmt.Errorf("%w: %w", errNoDescriptor, syscall.EBADF)
	}
	return x.shareFile(f, r)
}

func (x *Session) shareFile(f *os.File, r *reply) error {
	var resp abi.HandleMessage
	x.do(func() { resp.Handle = x.add(&fileObject{}) })
	if err := x.space.AddFile(resp.Handle, f); err != nil {
		x.do(func() { delete(x.objects, resp.Handle) })
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	*r = respond(&resp)
	return nil
}
