package verbs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"

	"urdma/verbs/abi"
)

// DeviceInfo describes a port of urdmad, as ibv_query_device and
// ibv_query_port do.
type DeviceInfo struct {
	Index   int
	Name    string
	Address netip.Prefix // its IPv4 address and network
	MAC     net.HardwareAddr
	MTU     int // bytes of the largest IPv4 packet
	LinkUp  bool

	MaxQP, MaxQPRequests, MaxSGE, MaxInline int // of a queue pair: requests, elements, bytes
	MaxCQ, MaxCQEntries, MaxMR, MaxPD       int
	MaxReads                                int // RDMA Reads open at once, each way
	MaxRegion, MaxMessage                   uint64
}

// Devices lists urdmad's ports.
func (c *Client) Devices() ([]DeviceInfo, error) {
	var out []DeviceInfo
	for i := range c.devices {
		d, err := c.queryDevice(i)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func (c *Client) queryDevice(i int) (DeviceInfo, error) {
	req := abi.DeviceRequest{Device: uint32(i)}
	var d abi.Device
	if _, err := call(c, abi.QueryDevice, &req, &d); err != nil {
		return DeviceInfo{}, fmt.Errorf("verbs: query device %d: %w", i, err)
	}
	name, _, _ := bytes.Cut(d.Name[:], []byte{0})
	return DeviceInfo{Index: i, Name: string(name), MAC: net.HardwareAddr(d.MAC[:]), MTU: int(d.MTU), LinkUp: d.LinkUp != 0,
		Address: netip.PrefixFrom(netip.AddrFrom4(d.IPv4BE), int(d.PrefixLength)),
		MaxQP:   int(d.MaxQP), MaxQPRequests: int(d.MaxQPWR), MaxSGE: int(d.MaxSGE), MaxInline: int(d.MaxInline),
		MaxCQ: int(d.MaxCQ), MaxCQEntries: int(d.MaxCQE), MaxMR: int(d.MaxMR), MaxPD: int(d.MaxPD),
		MaxReads: int(d.MaxRdAtom), MaxRegion: d.MaxMRSize, MaxMessage: d.MaxMsg}, nil
}

// Device is an opened device: the context that protection domains and completion
// queues are made in.
type Device struct {
	Info   DeviceInfo
	c      *Client
	handle uint32
	events *eventFile
}

// OpenDevice opens a device by its index in Devices.
func (c *Client) OpenDevice(index int) (*Device, error) {
	info, err := c.queryDevice(index)
	if err != nil {
		return nil, err
	}
	req := abi.DeviceRequest{Device: uint32(index)}
	var resp abi.HandleMessage
	fds, err := call(c, abi.OpenDevice, &req, &resp)
	if err != nil {
		return nil, fmt.Errorf("verbs: open device %d: %w", index, err)
	}
	fd, err := one("open device", fds)
	if err != nil {
		return nil, err
	}
	d := &Device{Info: info, c: c, handle: resp.Handle}
	if d.events, err = newEventFile(c, fd, "asynchronous events"); err != nil {
		return nil, err
	}
	return d, nil
}

// Event is an asynchronous event of a device, enum ibv_event_type.
type Event struct {
	Type   EventType
	Handle uint32 // QP.Handle or CQ.Handle of what it concerns
}

// EventType is the kind of an asynchronous event.
type EventType uint32

// Kinds of asynchronous events.
const (
	EventCQError     EventType = abi.EventCQErr       // a completion queue overran
	EventQPFatal     EventType = abi.EventQPFatal     // a queue pair failed by a mistake of its own
	EventQPRequest   EventType = abi.EventQPReqErr    // the peer sent what no receive could take
	EventQPAccess    EventType = abi.EventQPAccessErr // the peer asked for memory it has no right to
	EventDeviceFatal EventType = abi.EventDeviceFatal
	EventPortActive  EventType = abi.EventPortActive
	EventPortError   EventType = abi.EventPortErr
)

// NextEvent waits for the next asynchronous event. ErrGone means that urdmad
// ended, ErrClosed that the device was closed.
func (d *Device) NextEvent(ctx context.Context) (Event, error) {
	ev, err := receive[abi.AsyncEvent](ctx, d.events)
	return Event{Type: EventType(ev.EventType), Handle: ev.Handle}, err
}

// Close closes the device; EBUSY while protection domains or completion queues
// made in it are open.
func (d *Device) Close() error {
	if err := release(d.c, abi.CloseDevice, d.handle); err != nil {
		return fmt.Errorf("verbs: close device: %w", err)
	}
	d.events.close()
	return nil
}

// PD is a protection domain: memory regions and queue pairs of one belong
// together.
type PD struct {
	dev    *Device
	handle uint32
}

// AllocPD makes a protection domain.
func (d *Device) AllocPD() (*PD, error) {
	req := abi.HandleMessage{Handle: d.handle}
	var resp abi.HandleMessage
	if _, err := call(d.c, abi.AllocPD, &req, &resp); err != nil {
		return nil, fmt.Errorf("verbs: allocate protection domain: %w", err)
	}
	return &PD{dev: d, handle: resp.Handle}, nil
}

// Close gives the protection domain up; EBUSY while it has regions or queue
// pairs.
func (p *PD) Close() error {
	if err := release(p.dev.c, abi.DeallocPD, p.handle); err != nil {
		return fmt.Errorf("verbs: close protection domain: %w", err)
	}
	return nil
}
