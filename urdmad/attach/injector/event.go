package injector

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"urdma/inject"
	"urdma/reason"
	"urdma/urdmad/control"
	"urdma/urdmad/control/objects"
	"urdma/verbs/abi"
)

// This file raises the events that urdma inject asks for.

// raise makes something happen now.
func (s *script) raise(one *inject.Statement) error {
	counted := false
	err := s.each(func(w *worker) error {
		err := s.raiseAt(w, one)
		if err == nil && !counted {
			counted = true
			w.hits++
		}
		return err
	})
	if err != nil {
		return err
	}
	if one.Object == "link" {
		s.linkCut(one)
	}
	s.n.server.Log.Warn("injected", "statement", one.Text, "pid", s.by.PID, "uid", s.by.UID)
	return nil
}

// raiseAt makes it happen at one worker, in one of its turns.
func (s *script) raiseAt(w *worker, one *inject.Statement) error {
	switch one.Object {
	case "qp":
		return s.raisePair(w, one)
	case "cq":
		return s.raiseQueue(w, one)
	case "srq":
		return s.raiseShared(w, one)
	}
	return s.raiseDevice(w, one)
}

func (s *script) raisePair(w *worker, one *inject.Statement) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(one.ID, "0x"), 16, 24)
	if err != nil {
		return fmt.Errorf("queue pair %q, expected a hexadecimal number: %w", one.ID, syscall.EINVAL)
	}
	q, err := s.pair(w, uint32(n))
	if err != nil {
		return err
	}
	switch event := uint32(one.Event); event {
	case abi.EventQPFatal, abi.EventQPReqErr, abi.EventQPAccessErr: // these events mean that the queue pair is in error
		q.Fail(event, reason.Injected)
	default:
		w.Engine.QPs.SendAsync(q, event)
	}
	return nil
}

// objectOf returns the single object of type T with a handle. Several clients may use the same
// handle.
func objectOf[T control.Object](s *script, w *worker, one *inject.Statement) (found T, err error) {
	n, err := strconv.ParseUint(one.ID, 10, 32)
	if err != nil {
		return found, fmt.Errorf("%s is %q, expected its HANDLE, as urdma show prints it: %w",
			one.Object, one.ID, syscall.EINVAL)
	}
	count := 0
	for _, c := range s.clients(w) {
		if o, err := control.Find[T](c.x, uint32(n)); err == nil && (one.Rule.PID == 0 || c.x.Owner.PID == one.Rule.PID) {
			found, count = o, count+1
		}
	}
	switch {
	case count == 0:
		return found, fmt.Errorf("no %s with handle %d that is yours: %w", one.Object, n, syscall.ENOENT)
	case count > 1:
		return found, fmt.Errorf("%d processes have a %s with handle %d; pid=PID says which: %w",
			count, one.Object, n, syscall.ENOTUNIQ)
	}
	return found, nil
}

func (s *script) raiseQueue(w *worker, one *inject.Statement) error {
	o, err := objectOf[*objects.CQ](s, w, one)
	switch t := w.Engine.QPs; {
	case err != nil:
		return err
	case one.Event != inject.EventNone:
		t.BreakCQ(o.CQ)
	case o.CQ.Channel == nil:
		return fmt.Errorf("the completion queue has no channel: %w", syscall.ENXIO)
	default:
		t.Notify(o.CQ)
	}
	return nil
}

func (s *script) raiseShared(w *worker, one *inject.Statement) error {
	o, err := objectOf[*objects.SRQ](s, w, one)
	if err != nil {
		return err
	}
	if event := uint32(one.Event); event == abi.EventSRQErr {
		w.Engine.QPs.BreakSRQ(o.Queue)
	} else {
		s := o.Queue.Shared()
		w.Engine.QPs.Events.Send(s.Async, abi.Bytes(&abi.AsyncEvent{EventType: event, Handle: s.Handle}))
	}
	return nil
}

// raiseDevice raises an event of a device or its port for every program that has it open and that
// the script may affect.
func (s *script) raiseDevice(w *worker, one *inject.Statement) error {
	dev := s.n.server.PortNamed(one.ID)
	if one.Object == "device" {
		dev = s.n.server.DeviceNamed(one.ID)
	}
	handle := uint32(0)
	switch {
	case dev < 0:
		return fmt.Errorf("no %s %q: %w", one.Object, one.ID, syscall.ENODEV)
	case one.Object == "link" && s.own != nil, one.Object != "device" && s.own == nil && !s.by.Admin:
		return fmt.Errorf("a port is its administrator's to break: %w", syscall.EPERM)
	case one.Object == "link":
		return s.cutLink(w, dev, one.Event == abi.EventPortErr)
	case one.Object == "port":
		handle = uint32(s.n.server.Devices[dev].Number)
	}
	if w.Telling() { // so that pending events do not pile up
		return errNextTurn
	}
	first := s.n.server.First(dev)
	var to []*control.Session
	for _, c := range s.clients(w) {
		to = append(to, c.x)
		if one.Event == abi.EventDeviceFatal && c.x.Opened(first) {
			w.Engine.QPs.BreakClient(c.qp)
		}
	}
	w.Tell(to, first, abi.AsyncEvent{EventType: uint32(one.Event), Handle: handle})
	return nil
}

// cutLink takes a port's link down at a worker, or ends that.
func (s *script) cutLink(w *worker, dev int, down bool) error {
	if down && w.Engine.OverTCP(dev) {
		return fmt.Errorf("connections of port %q go over the kernel's TCP, which goes on; "+
			"take down the kernel's link (ip-link(8)), or have programs told alone (PORT_ERR): %w",
			s.n.server.Devices[dev].Name, syscall.EOPNOTSUPP)
	}
	w.cutWire(cut{dev: dev}, down)
	return nil
}

// linkCut reports at each worker that a link was taken down or restored.
func (s *script) linkCut(one *inject.Statement) {
	dev, down := s.n.server.PortNamed(one.ID), one.Event == abi.EventPortErr
	if s.n.CutLink != nil {
		s.n.CutLink(dev, down)
	} else {
		s.n.server.LinkChanged(dev, !down)
	}
}
