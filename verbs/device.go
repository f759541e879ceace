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

// Device is a port of urdmad (ibv_get_device_list(3), ibv_query_device(3)), as it was when the client
// connected. A device that libibverbs shows with several ports is several Devices here.
type Device struct {
	client *Client
	number int

	Name        string       // if the device has several ports, followed by the port's number: hca0/2
	Port        int          // from 1
	Prefix      netip.Prefix // its IP address with the length of the network's prefix
	MAC         net.HardwareAddr
	MTU         int // bytes of the largest IP packet
	Up          bool
	MaxQP       int
	MaxQPWR     int // work requests of one queue
	MaxSGE      int // scatter/gather elements of one work request
	MaxInline   int // bytes
	MaxCQ       int
	MaxCQE      int // completions in one queue
	MaxMR       int
	MaxMW       int // memory windows
	MaxSRQ      int
	MaxSRQWR    int // receives in one shared receive queue
	MaxSRQSGE   int // elements of one receive in a shared receive queue
	MaxPD       int
	MaxReads    int    // outstanding RDMA Reads of one queue pair, in each direction
	MaxMRSize   uint64 // bytes registered by one client
	MaxMessage  uint64 // bytes of the longest message on a connection
	MaxDatagram int    // bytes of the longest message on a queue pair of type UD
	maxSGERead  int
	TransportID uint32 // how libibverbs programs see the device: abi.TransportIWARP, …
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

// shown is as what this program shows devices: the profile in URDMA_PROFILE, or what is configured.
func shown() abi.Shown {
	s := abi.Shown{Transport: abi.TransportDefault}
	copy(s.Profile[:len(s.Profile)-1], os.Getenv("URDMA_PROFILE"))
	return s
}

func (d *Device) read(ctx context.Context) error {
	var v abi.Device
	if _, err := callContext(ctx, d.client, abi.QueryDevice,
		&abi.QueryDeviceRequest{Device: uint32(d.number), Shown: shown()}, &v, -1, 0); err != nil {
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
		MaxSRQ: int(v.MaxSRQ), MaxSRQWR: int(v.MaxSRQWR), MaxSRQSGE: int(v.MaxSRQSGE), MaxPD: int(v.MaxPD),
		MaxReads:  int(v.MaxRdAtom),
		MaxMRSize: v.MaxMRSize, MaxMessage: v.MaxMsg, MaxDatagram: int(v.MaxDatagram), maxSGERead: int(v.MaxSGERd),
		TransportID: v.Transport}
	return nil
}

// Query returns the device's present state (ibv_query_port(3)): a port on a network interface is Up while
// that is, and its MTU may change.
func (d *Device) Query() (*Device, error) {
	now := &Device{client: d.client, number: d.number}
	if err := now.read(context.Background()); err != nil {
		return nil, err
	}
	return now, nil
}

// maxMessage returns the length of the longest message on queue pairs of a type, in bytes.
func (d *Device) maxMessage(kind QPType) uint64 {
	if kind == UD {
		return uint64(d.MaxDatagram)
	}
	return d.MaxMessage
}

// Devices returns urdmad's ports. The caller owns the slice.
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

	own     session.Mutex // guards channel
	channel *CompChannel  // for connections without completion queues of their own
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
		_ = c.callHandle(abi.CloseDevice, resp.Handle) // the first error is the one to return
		return nil, err
	}
	x := &Context{client: c, device: d, handle: resp.Handle, async: f, events: make(chan AsyncEvent, 16),
		done: make(chan struct{}),
		own:  session.NewMutex()}
	c.contexts.Add(x.handle, x)
	c.readers.Go(x.readAsync)
	return x, nil
}

// Device returns the device that was opened.
func (x *Context) Device() *Device { return x.device }

// Close closes the device; EBUSY while it has protection domains, channels or completion queues
// (ibv_close_device(3)).
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

// closeChannel destroys the channel that connections in domains of this context share; EBUSY while there are
// any.
func (x *Context) closeChannel() error {
	_ = x.own.Lock(context.Background()) // never ends
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
	// For a queue pair in error that uses a shared receive queue: the last receive that it took has
	// completed.
	EventLastWQEReached AsyncType = abi.EventQPLastWQEReached
	// Work posted before a move to SQD has completed (see Modify).
	EventSQDrained   AsyncType = abi.EventSQDrained
	EventDeviceFatal AsyncType = abi.EventDeviceFatal
	EventPortActive  AsyncType = abi.EventPortActive
	EventPortErr     AsyncType = abi.EventPortErr
	// For a port shown as InfiniBand: another subnet manager has taken over, or asks for groups, services and
	// subscriptions to be registered again.
	EventSMChange         AsyncType = abi.EventSMChange
	EventClientReregister AsyncType = abi.EventClientReregister
	// The port's address has changed.
	EventGIDChange AsyncType = abi.EventGIDChange
)

// AsyncEvent is an asynchronous event with the object it concerns.
type AsyncEvent struct {
	Type AsyncType
	CQ   *CQ  // for EventCQErr
	QP   *QP  // for queue pair events
	SRQ  *SRQ // for EventSRQLimitReached
	Port int  // for port events; counted from 1
}

// Events returns a channel of the context's asynchronous events (ibv_get_async_event(3)), including those of
// other ports that libibverbs shows on the same device; they need no acknowledgement. When urdmad ends,
// EventDeviceFatal comes last. The channel is closed after the last event.
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
	case <-x.client.Gone(): // only the control socket shows reliably that urdmad has ended
		x.report(AsyncEvent{Type: EventDeviceFatal})
	}
}

func (x *Context) report(ev AsyncEvent) {
	select {
	case <-x.done:
	case x.events <- ev:
	}
}

// translate finds the object; ok is false for an event of a closed object.
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
