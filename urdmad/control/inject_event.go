package control

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"urdma/inject"
	"urdma/verbs/abi"
)

// This file is the events that urdma inject has happen at once.

// raise has something happen now.
func (s *script) raise(one *inject.Statement) (err error) {
	switch one.Object {
	case "qp":
		err = s.raisePair(one)
	case "cq":
		err = s.raiseQueue(one)
	case "srq":
		err = s.raiseShared(one)
	default:
		err = s.raiseDevice(one)
	}
	if err == nil && s.all.first(s.all.told, one) {
		s.in.hits++
		s.by.s.Log.Warn("injected", "statement", one.Text, "pid", s.by.Owner.PID, "uid", s.by.Owner.UID)
	}
	return err
}

func (s *script) raisePair(one *inject.Statement) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(one.ID, "0x"), 16, 24)
	if err != nil {
		return fmt.Errorf("queue pair %q, expected a hexadecimal number: %w", one.ID, syscall.EINVAL)
	}
	q, err := s.pair(uint32(n))
	if err == nil {
		s.w.Engine.QPs.Raise(q, uint32(one.Event))
	}
	return err
}

// objectOf finds the one object of type T with a handle: handles are each client's own.
func objectOf[T held](s *script, one *inject.Statement) (found T, err error) {
	n, err := strconv.ParseUint(one.ID, 10, 32)
	if err != nil {
		return found, fmt.Errorf("%s is %q, expected its HANDLE, as urdma show prints it: %w", one.Object, one.ID, syscall.EINVAL)
	}
	count := 0
	for _, x := range s.clients() {
		if o, err := find[T](x, uint32(n)); err == nil && (one.Rule.PID == 0 || x.Owner.PID == one.Rule.PID) {
			found, count = o, count+1
		}
	}
	switch {
	case count == 0:
		return found, fmt.Errorf("no %s with handle %d that is yours: %w", one.Object, n, syscall.ENOENT)
	case count > 1:
		return found, fmt.Errorf("%d processes have a %s with handle %d; pid=PID says which: %w", count, one.Object, n, syscall.ENOTUNIQ)
	}
	return found, nil
}

func (s *script) raiseQueue(one *inject.Statement) error {
	o, err := objectOf[*cqObject](s, one)
	switch t := s.w.Engine.QPs; {
	case err != nil:
		return err
	case one.Event != inject.EventNone:
		t.BreakCQ(o.cq)
	case !t.RaiseCompletion(o.cq):
		return fmt.Errorf("the completion queue has no channel: %w", syscall.ENXIO)
	}
	return nil
}

func (s *script) raiseShared(one *inject.Statement) error {
	o, err := objectOf[*srqObject](s, one)
	if err == nil {
		s.w.Engine.QPs.RaiseSRQ(o.queue, uint32(one.Event))
	}
	return err
}

// raiseDevice is an event of a device or of its port, for every program that has it open
// and is the script's to break.
func (s *script) raiseDevice(one *inject.Statement) error {
	server := s.by.s
	dev := server.portNamed(one.ID)
	if one.Object == "device" {
		dev = server.deviceNamed(one.ID)
	}
	switch {
	case dev < 0:
		return fmt.Errorf("no %s %q: %w", one.Object, one.ID, syscall.ENODEV)
	case one.Object == "link":
		return s.cutLink(one, dev, one.Event == abi.EventPortErr)
	case one.Object == "port" && (!s.by.Owner.Admin || s.own):
		return fmt.Errorf("a port is its administrator's to break: %w", syscall.EPERM)
	}
	handle := uint32(server.Devices[dev].Number)
	if one.Object == "device" {
		handle = 0
	}
	return s.everywhere(one, func(at *script) error {
		at.tellOf(dev, handle, one.Event)
		return nil
	})
}

// tellOf has an event come to the clients of the script's worker that have a device open.
func (s *script) tellOf(dev int, handle uint32, event int64) {
	var to []linkEvent
	for _, x := range s.clients() {
		for _, c := range x.contexts {
			if c.dev == s.by.s.first(dev) {
				to = append(to, linkEvent{c.async, abi.AsyncEvent{EventType: uint32(event), Handle: handle}})
				if event == abi.EventDeviceFatal {
					s.w.Engine.QPs.BreakClient(&x.client.Client)
				}
			}
		}
	}
	s.w.tell(to)
}

// cutLink takes a port's link down, or lets it be again.
func (s *script) cutLink(one *inject.Statement, dev int, down bool) error {
	server := s.by.s
	if !s.by.Owner.Admin || s.own {
		return fmt.Errorf("a port is its administrator's to break: %w", syscall.EPERM)
	}
	if down && s.w.Engine.OverTCP(dev) {
		return fmt.Errorf("connections of port %q go over the kernel's TCP, which goes on; take down the kernel's link (ip-link(8)), or have programs told alone (PORT_ERR): %w",
			server.Devices[dev].Name, syscall.EOPNOTSUPP)
	}
	return s.everywhere(one, func(at *script) error {
		at.in.cutWire(cut{dev: dev}, down)
		if at.w != s.w {
			return nil
		}
		if server.CutLink != nil {
			server.CutLink(dev, down)
		} else {
			server.LinkChanged(dev, !down)
		}
		return nil
	})
}
