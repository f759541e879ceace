package verbs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// Device is a port of urdmad (ibv_get_device_list(3), ibv_query_device(3)), as
// it was when the client connected. Where what libibverbs shows as one device has several
// ports, each is a Device.
type Device struct {
	client *Client
	number int

	Name        string       // with the port's number behind a slash, where there are others: hca0/2
	Port        int          // from 1
	Prefix      netip.Prefix // its IP address with the length of the network's prefix
	MAC         net.HardwareAddr
	MTU         int // bytes of the largest IP packet
	Up          bool
	MaxQP       int
	MaxQPWR     int // work requests of one queue
	MaxSGE      int // scatter/gather elements of one work request
	MaxInline   int // bytes of inline data
	MaxCQ       int
	MaxCQE      int // completions of one queue
	MaxMR       int
	MaxMW       int // memory windows
	MaxSRQ      int
	MaxSRQWR    int // receives of one shared receive queue
	MaxSRQSGE   int // elements of each
	MaxPD       int
	MaxReads    int    // RDMA Reads of one queue pair at a time, in either direction
	MaxMRSize   uint64 // bytes registered by one client
	MaxMessage  uint64 // bytes of the longest message of a connection
	MaxDatagram int    // bytes of the longest one of a queue pair of type UD
	maxSGERead  int
	TransportID uint32 // as which libibverbs programs are shown it: abi.TransportIWARP and its kin
}

func (c *Client) readDevices(ctx context.Context, n int) error {
	for i := range n {
		d := &Device{client: c, number: i}
		if err := d.read(ctx); err != nil {
			return err
		}
		c.devices = append(c.devices, d)
	}
	return nil
}

func (d *Device) read(ctx context.Context) error {
	var v abi.Device
	if _, err := callContext(ctx, d.client, abi.QueryDevice, &abi.QueryDeviceRequest{Device: uint32(d.number), Transport: abi.TransportDefault}, &v, -1, 0); err != nil {
		return err
	}
	name, _, _ := bytes.Cut(v.Name[:], []byte{0})
	label := string(name)
	if v.NumPorts > 1 {
		label = fmt.Sprintf("%s/%d", name, v.PortNum)
	}
	*d = Device{client: d.client, number: d.number, Name: label, Port: int(v.PortNum),
		Prefix: netip.PrefixFrom(v.Addr.AddrPort().Addr(), int(v.PrefixLength)), MAC: net.HardwareAddr(v.MAC[:]),
		MTU: int(v.MTU), Up: v.LinkUp != 0, MaxQP: int(v.MaxQP), MaxQPWR: int(v.MaxQPWR), MaxSGE: int(v.MaxSGE),
		MaxInline: int(v.MaxInline), MaxCQ: int(v.MaxCQ), MaxCQE: int(v.MaxCQE), MaxMR: int(v.MaxMR), MaxMW: int(v.MaxMW),
		MaxSRQ: int(v.MaxSRQ), MaxSRQWR: int(v.MaxSRQWR), MaxSRQSGE: int(v.MaxSRQSGE), MaxPD: int(v.MaxPD), MaxReads: int(v.MaxRdAtom),
		MaxMRSize: v.MaxMRSize, MaxMessage: v.MaxMsg, MaxDatagram: int(v.MaxDatagram), maxSGERead: int(v.MaxSGERd), TransportID: v.Transport}
	return nil
}

// Query is the device as it is now (ibv_query_port(3)): a port over a network
// interface is Up when that is, and may get another MTU.
func (d *Device) Query() (*Device, error) {
	now := &Device{client: d.client, number: d.number}
	if err := now.read(context.Background()); err != nil {
		return nil, err
	}
	return now, nil
}

// maxMessage is the longest message of queue pairs of a type, in bytes.
func (d *Device) maxMessage(kind QPType) uint64 {
	if kind == UD {
		return uint64(d.MaxDatagram)
	}
	return d.MaxMessage
}

// Devices are urdmad's ports. The slice is the caller's.
func (c *Client) Devices() []*Device { return append([]*Device(nil), c.devices...) }

// Context is an opened device (ibv_open_device(3)).
type Context struct {
	client *Client
	device *Device
	handle uint32
	async  *os.File
	events chan AsyncEvent
	done   chan struct{}
	once   sync.Once

	own     session.Mutex // of channel
	channel *CompChannel  // for connections that bring no completion queues
}

// Open opens the device.
func (d *Device) Open() (*Context, error) { return d.open(context.Background()) }

func (d *Device) open(ctx context.Context) (*Context, error) {
	c := d.client
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.HandleMessage
	fds, err := callContext(ctx, c, abi.OpenDevice, &abi.OpenDeviceRequest{Device: uint32(d.number)}, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	f, err := session.EventSocket(fds[0], "urdma asynchronous events")
	if err != nil {
		_ = c.callHandle(abi.CloseDevice, resp.Handle) // the error that counts is the first
		return nil, err
	}
	x := &Context{client: c, device: d, handle: resp.Handle, async: f, events: make(chan AsyncEvent, 16), done: make(chan struct{}),
		own: session.NewMutex()}
	c.contexts.Add(x.handle, x)
	c.readers.Go(x.readAsync)
	return x, nil
}

// Device is what was opened.
func (x *Context) Device() *Device { return x.device }

// Close closes the device; EBUSY while a protection domain, channel or
// completion queue of it is left (ibv_close_device(3)).
func (x *Context) Close() error {
	if err := x.closeChannel(); err != nil {
		return err
	}
	if err := x.client.destroy(abi.CloseDevice, x.handle); err != nil {
		return err
	}
	x.client.contexts.Remove(x.handle)
	x.release()
	return nil
}

// closeChannel destroys the channel that connections in domains of this context
// share; EBUSY while there are any.
func (x *Context) closeChannel() error {
	_ = x.own.Lock(context.Background()) // which never ends
	defer x.own.Unlock()
	if x.channel == nil {
		return nil
	}
	err := x.channel.Close()
	if err == nil {
		x.channel = nil
	}
	return err
}

func (x *Context) release() {
	x.once.Do(func() { close(x.done) })
	x.async.Close()
}

// AsyncType is the kind of an asynchronous event, enum ibv_event_type.
type AsyncType uint32

// Asynchronous events (ibv_get_async_event(3)).
const (
	EventCQErr       AsyncType = abi.EventCQErr
	EventQPFatal     AsyncType = abi.EventQPFatal
	EventQPReqErr    AsyncType = abi.EventQPReqErr
	EventQPAccessErr AsyncType = abi.EventQPAccessErr
	EventCommEst     AsyncType = abi.EventCommEst
	// Fewer receives are posted than the limit of the shared receive queue.
	EventSRQLimitReached AsyncType = abi.EventSRQLimitReached
	// Of a queue pair in error that draws from one: the last receive that it had
	// taken has completed.
	EventLastWQEReached AsyncType = abi.EventQPLastWQEReached
	// What was posted before a move to SQD has completed (see Modify).
	EventSQDrained   AsyncType = abi.EventSQDrained
	EventDeviceFatal AsyncType = abi.EventDeviceFatal
	EventPortActive  AsyncType = abi.EventPortActive
	EventPortErr     AsyncType = abi.EventPortErr
	// Of a port shown as InfiniBand's: another subnet manager manages it, or wants to be told anew of
	// groups, services and subscriptions.
	EventSMChange         AsyncType = abi.EventSMChange
	EventClientReregister AsyncType = abi.EventClientReregister
	// The port has another address.
	EventGIDChange AsyncType = abi.EventGIDChange
)

// AsyncEvent is an asynchronous event with the object it concerns.
type AsyncEvent struct {
	Type AsyncType
	CQ   *CQ  // of EventCQErr
	QP   *QP  // of the queue pair events
	SRQ  *SRQ // of EventSRQLimitReached
	Port int  // of the port events, from 1
}

// Events are the context's asynchronous events (ibv_get_async_event(3)), also those of
// other ports that libibverbs shows as the same device's; they
// need no acknowledgement. When urdmad ends, EventDeviceFatal comes last. The
// channel is closed when no more will come.
func (x *Context) Events() <-chan AsyncEvent { return x.events }

func (x *Context) readAsync() {
	defer close(x.events)
	session.ReadEvents(x.async, func(m *abi.AsyncEvent) {
		if ev, ok := x.translate(m); ok {
			x.report(ev)
		}
	})
	select {
	case <-x.done:
	case <-x.client.Gone(): // the control socket tells urdmad's end, not this one
		x.report(AsyncEvent{Type: EventDeviceFatal})
	}
}

func (x *Context) report(ev AsyncEvent) {
	select {
	case <-x.done:
	case x.events <- ev:
	}
}

// translate finds the object; an event of one that is gone is late.
func (x *Context) translate(m *abi.AsyncEvent) (ev AsyncEvent, ok bool) {
	ev.Type, ok = AsyncType(m.EventType), true
	switch ev.Type {
	case EventCQErr:
		ev.CQ, ok = x.client.cqs.Get(m.Handle)
	case EventSRQLimitReached:
		ev.SRQ, ok = x.client.srqs.Get(m.Handle)
	case EventPortActive, EventPortErr, EventSMChange, EventClientReregister, EventGIDChange, EventDeviceFatal:
		ev.Port = int(m.Handle)
	default:
		ev.QP, ok = x.client.qps.Get(m.Handle)
	}
	return ev, ok
}
