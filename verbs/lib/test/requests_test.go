package test

import (
	"encoding/binary"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/personality"
	"urdma/verbs/ring"
)

type (
	contextObject struct{ async int }
	pdObject      struct{}
	mrObject      struct{ abi.RegMRRequest }
	channelObject struct{ fd int }
	cqObject      struct {
		ring    ring.ServerCQ
		handle  uint32
		channel *channelObject
		context *contextObject
	}
	qpObject struct {
		ring       ring.ServerQP
		handle     uint32
		response   abi.QPResponse
		send, recv *cqObject
		sigAll     bool
		state      uint32
		sq, rq     uint32 // indices of the requests consumed
		pd         uint32
		user       uint64
	}
)

func answerOf[T any](v T) []byte { return abi.Bytes(&v) }

func lookUp[T any](s *session, handle uint32) (T, bool) {
	v, ok := s.objects[handle].(T)
	return v, ok
}

func (s *session) answer(m []byte, received []int) ([]byte, []int, syscall.Errno) {
	switch abi.Type(binary.NativeEndian.Uint32(m)) {
	case abi.Hello:
		return s.hello()
	case abi.OpenRDMANetlink:
		return nil, nil, 0
	case abi.QueryDevice:
		return s.queryDevice(m)
	case abi.OpenDevice:
		ours, theirs := s.socket()
		return answerOf(abi.HandleMessage{Handle: s.add(&contextObject{ours})}), []int{theirs}, 0
	case abi.AllocPD:
		return answerOf(abi.HandleMessage{Handle: s.add(&pdObject{})}), nil, 0
	case abi.AddFile:
		if len(received) != 1 {
			return nil, nil, syscall.EBADF
		}
		return answerOf(abi.HandleMessage{Handle: s.add("file")}), nil, 0
	case abi.CreateChannel:
		ours, theirs := s.socket()
		return answerOf(abi.HandleMessage{Handle: s.add(&channelObject{ours})}), []int{theirs}, 0
	case abi.RegMR:
		return s.regMR(m)
	case abi.CreateCQ:
		return s.createCQ(m)
	case abi.ResizeCQ:
		return s.resizeCQ(m)
	case abi.CreateQP:
		return s.createQP(m)
	case abi.ModifyQP:
		return s.modifyQP(m)
	case abi.QueryQP:
		s.serveRings() // as in urdmad, work posted before the query is done first
		h, _ := abi.Decode[abi.HandleMessage](m)
		return s.queryQP(h.Handle)
	case abi.DeallocPD:
		return s.deallocPD(m)
	case abi.CloseDevice, abi.DeregMR, abi.DestroyChannel, abi.DestroyCQ, abi.DestroyQP:
		return s.destroy(m)
	}
	return nil, nil, syscall.EOPNOTSUPP
}

func (s *session) hello() ([]byte, []int, syscall.Errno) {
	r := abi.HelloResponse{ABIVersion: s.d.version, NumDevices: 1,
		DoorbellBytes: s.d.workers * uint32(abi.Size[abi.Doorbells]()), Workers: s.d.workers}
	copy(r.SysfsPath[:], s.d.sysfs)
	if s.d.version != abi.Version {
		return answerOf(r), nil, syscall.EPROTO
	}
	mem, fd := s.memory(r.DoorbellBytes)
	fds := []int{fd}
	for range s.d.workers {
		ours, theirs := s.socket()
		s.kick, fds = ours, append(fds, theirs)
	}
	s.sockets = slices.Delete(s.sockets, len(s.sockets)-1, len(s.sockets)) // work closes the kick socket
	s.bells = newBells(mem, int(s.d.workers)-1)
	go s.work()
	return answerOf(r), fds, 0
}

// queryDevice answers as the test configured it; with linkDownOnce the link is down in the first answer after
// a context was opened.
func (s *session) queryDevice(m []byte) ([]byte, []int, syscall.Errno) {
	device := s.d.device
	r, ok := abi.Decode[abi.QueryDeviceRequest](m)
	shown := personality.Named(personality.IWARP)
	if r.Shown.Transport != abi.TransportDefault {
		shown = personality.Numbered(r.Shown.Transport)
	}
	if !ok || shown == nil {
		return nil, nil, syscall.EINVAL
	}
	shown.Describe(&personality.Port{MAC: device.MAC, Addr: device.Addr.AddrPort().Addr()}, &device)
	if s.d.linkDownOnce && len(s.objects) > 0 {
		s.d.linkDownOnce, device.LinkUp = false, 0
	}
	return answerOf(device), nil, 0
}

func (s *session) regMR(m []byte) ([]byte, []int, syscall.Errno) {
	r, ok := abi.Decode[abi.RegMRRequest](m)
	if _, pd := lookUp[*pdObject](s, r.PD); !ok || !pd {
		return nil, nil, syscall.EINVAL
	}
	keys := abi.RegMRResponse{Handle: s.add(&mrObject{r})}
	keys.LKey, keys.RKey = keys.Handle<<8, keys.Handle<<8|1
	if r.Replaces != 0 {
		keys.LKey, keys.RKey = r.Replaces<<8, r.Replaces<<8|1
		delete(s.objects, r.Replaces)
	}
	return answerOf(keys), nil, 0
}

func (s *session) deallocPD(m []byte) ([]byte, []int, syscall.Errno) {
	h, _ := abi.Decode[abi.HandleMessage](m)
	for _, o := range s.objects {
		if mr, ok := o.(*mrObject); ok && mr.PD == h.Handle {
			return nil, nil, syscall.EBUSY
		}
	}
	return s.destroy(m)
}

func (s *session) createCQ(m []byte) ([]byte, []int, syscall.Errno) {
	r, ok := abi.Decode[abi.CreateCQRequest](m)
	ctx, known := lookUp[*contextObject](s, r.Context)
	if !ok || !known || r.CompVector >= s.d.device.NumCompVectors {
		return nil, nil, syscall.EINVAL
	}
	s.d.vectors = append(s.d.vectors, r.CompVector)
	layout := ring.CQLayout(r.CQE)
	mem, fd := s.memory(layout.Bytes)
	cq := &cqObject{context: ctx}
	cq.channel, _ = lookUp[*channelObject](s, r.Channel)
	cq.ring.Init(mem, &layout)
	cq.handle = s.add(cq)
	layout.Handle = cq.handle
	return answerOf(layout), []int{fd}, 0
}

func (s *session) resizeCQ(m []byte) ([]byte, []int, syscall.Errno) {
	r, ok := abi.Decode[abi.ResizeCQRequest](m)
	cq, known := lookUp[*cqObject](s, r.Handle)
	if !ok || !known || cq.ring.Pending() > r.CQE {
		return nil, nil, syscall.EINVAL
	}
	layout := ring.CQLayout(r.CQE)
	mem, fd := s.memory(layout.Bytes)
	var fresh ring.ServerCQ
	fresh.Init(mem, &layout)
	cq.ring.Copy(&fresh, cq.ring.Oldest(), int(r.CQE))
	fresh.SetArm(cq.ring.Arm())
	cq.ring = fresh
	layout.Handle = cq.handle
	return answerOf(layout), []int{fd}, 0
}

func (s *session) createQP(m []byte) ([]byte, []int, syscall.Errno) {
	r, ok := abi.Decode[abi.CreateQPRequest](m)
	send, sok := lookUp[*cqObject](s, r.SendCQ)
	recv, rok := lookUp[*cqObject](s, r.RecvCQ)
	if !ok || !sok || !rok {
		return nil, nil, syscall.EINVAL
	}
	layout := ring.QPLayout(r.Cap)
	mem, fd := s.memory(layout.Bytes)
	qp := &qpObject{send: send, recv: recv, sigAll: r.SQSigAll != 0, pd: r.PD, user: r.UserHandle}
	qp.ring.Init(mem, &layout)
	qp.handle = s.add(qp)
	layout.Handle, layout.QPN, layout.Doorbell, layout.Worker = qp.handle, 0x100+qp.handle, qp.handle, s.d.workers-1
	qp.response = layout
	return answerOf(layout), []int{fd}, 0
}

func (s *session) modifyQP(m []byte) ([]byte, []int, syscall.Errno) {
	r, ok := abi.Decode[abi.ModifyQPRequest](m)
	qp, known := lookUp[*qpObject](s, r.Handle)
	if !ok || !known {
		return nil, nil, syscall.EINVAL
	}
	if r.Mask&1 != 0 {
		qp.state = r.Attr.QPState
	}
	return s.queryQP(r.Handle)
}

func (s *session) queryQP(handle uint32) ([]byte, []int, syscall.Errno) {
	qp, known := lookUp[*qpObject](s, handle)
	if !known {
		return nil, nil, syscall.EINVAL
	}
	r := abi.QueryQPResponse{Cap: qp.response.Cap}
	r.Attr.QPState, r.Attr.CurQPState = qp.state, qp.state
	return answerOf(r), nil, 0
}

func (s *session) destroy(m []byte) ([]byte, []int, syscall.Errno) {
	h, ok := abi.Decode[abi.HandleMessage](m)
	object, known := s.objects[h.Handle]
	if !ok || !known {
		return nil, nil, syscall.EINVAL
	}
	switch o := object.(type) {
	case *channelObject:
		s.closeSocket(o.fd)
	case *contextObject:
		s.closeSocket(o.async)
	}
	delete(s.objects, h.Handle)
	return nil, nil, 0
}

// closeSocket closes an event socket.
func (s *session) closeSocket(fd int) {
	s.sockets = slices.DeleteFunc(s.sockets, func(open int) bool { return open == fd })
	unix.Close(fd)
}
