package control

import (
	"errors"
	"syscall"
	"time"

	"urdma/urdmad/clock"
	"urdma/urdmad/cm"
	"urdma/urdmad/connect"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/convert"
	"urdma/urdmad/events"
	"urdma/verbs/abi"
)

// cmSession is what of a session serves rdma_cm's requests.
type cmSession struct{ *Session }

// cmChannelObject is an rdma_cm event channel: cm.Channel.
type cmChannelObject struct {
	x      *Session
	socket *events.Socket
}

// Deliver is cm.Channel's; on the engine's thread.
func (c *cmChannelObject) Deliver(e *cm.Event) {
	v := convert.Event(e)
	v.Local, v.Peer = c.x.s.addr(e.Local, e.Dev), c.x.s.addr(e.Peer, e.Dev)
	c.x.s.Engine.QPs.Events.Send(c.socket, abi.Bytes(v))
}

func (x cmSession) createChannel(_ *abi.Header, r *reply) error {
	var resp abi.HandleMessage
	s, bill, err := x.newEvents(account.EventChannels, r)
	if err != nil {
		return err
	}
	r.body = abi.Bytes(&resp)
	x.do(func() { resp.Handle = x.add(&cmChannelObject{x: x.Session, socket: s}, bill) })
	return nil
}

func (x cmSession) destroyChannel(m *abi.HandleMessage, _ *reply) error {
	c, err := object[*cmChannelObject](x.Session, m.Handle)
	if err != nil {
		return err
	}
	x.do(func() {
		for _, v := range x.objects {
			if id, ok := v.(*cm.ID); ok && id.Channel == c {
				err = syscall.EBUSY
				return
			}
		}
		c.socket.Close()
		x.remove(m.Handle)
	})
	return err
}

func (x cmSession) createID(m *abi.CMCreateIDRequest, r *reply) error {
	c, err := object[*cmChannelObject](x.Session, m.Channel)
	if err != nil {
		return err
	}
	switch m.PS {
	case abi.PSTCP, abi.PSUDP, abi.PSIB, abi.PSIPoIB: // one space of port numbers serves all
	default:
		return syscall.EPROTONOSUPPORT
	}
	if err := x.Take(&oneID); err != nil {
		return err
	}
	var resp abi.HandleMessage
	x.do(func() {
		id := x.s.CM.Create(x.Session, c)
		id.Datagrams = m.PS == abi.PSUDP || m.PS == abi.PSIPoIB
		id.Handle = x.add(id, &oneID)
		resp.Handle = id.Handle
	})
	*r = respond(&resp)
	return nil
}

// Adopt is cm.Owner's: a connection request makes a new id of this client. It
// runs on the engine's thread.
func (x *Session) Adopt(id *cm.ID) bool {
	if x.ended {
		return false
	}
	if err := x.Take(&oneID); err != nil {
		x.s.Log.Warn("connection request refused", "client", x.name, "error", err)
		return false
	}
	id.Handle = x.add(id, &oneID)
	return true
}

var oneID = account.Amounts{account.IDs: 1}

// withID runs fn on the engine's thread with a handle's id.
func (x cmSession) withID(handle uint32, fn func(*cm.ID) error) (err error) {
	x.do(func() {
		var id *cm.ID
		if id, err = object[*cm.ID](x.Session, handle); err == nil {
			err = fn(id)
		}
	})
	return err
}

func (x cmSession) destroyID(m *abi.HandleMessage, _ *reply) error {
	return x.withID(m.Handle, func(id *cm.ID) error {
		x.s.CM.Destroy(id)
		x.remove(m.Handle)
		return nil
	})
}

// boundReply answers with where an id is bound now.
func (x cmSession) boundReply(id *cm.ID, r *reply) {
	var resp abi.CMBound
	local, dev := id.Bound()
	resp.Local, resp.Device = x.s.addr(local, dev), convert.Device(dev)
	*r = respond(&resp)
}

// endPatience is how long a bind waits for a session that is ending, which takes
// long where its thread gets no processor.
const endPatience = 10 * time.Second

// bind binds. A program that was killed a moment ago may still hold the port
// number, until its session has heard of the hang-up: kernel sockets are closed
// before the parent learns of the death, so a restarted server expects to bind
// at once. Whoever holds it alive is answered for at once.
func (x cmSession) bind(m *abi.CMBindRequest, r *reply) error {
	addr, err := convert.AddrPort(m.Addr)
	if err != nil {
		return err
	}
	if !x.Owner.MayBind(x.UnixConn, addr.Port()) {
		return syscall.EACCES
	}
	limit := time.NewTimer(endPatience)
	defer limit.Stop()
	for {
		var holders []cm.Owner
		err = x.withID(m.ID, func(id *cm.ID) error {
			err := x.s.CM.Bind(id, addr)
			x.boundReply(id, r)
			if errors.Is(err, syscall.EADDRINUSE) {
				holders = x.s.CM.Holders(id, addr)
			}
			return err
		})
		ending := endingOf(holders)
		if err == nil || ending == nil {
			return err
		}
		select {
		case <-ending.over:
		case <-limit.C:
			return err
		}
	}
}

// endingOf finds a session whose client has hung up.
func endingOf(holders []cm.Owner) *Session {
	for _, h := range holders {
		if y, ok := h.(*Session); ok && y.HungUp() {
			return y
		}
	}
	return nil
}

func (x cmSession) resolveAddr(m *abi.CMResolveAddrRequest, r *reply) error {
	src, err := convert.AddrPort(m.Src)
	if err != nil {
		return err
	}
	dst, err := convert.AddrPort(m.Dst)
	if err != nil {
		return err
	}
	if !x.Owner.MayBind(x.UnixConn, src.Port()) {
		return syscall.EACCES
	}
	return x.withID(m.ID, func(id *cm.ID) error {
		err := x.s.CM.ResolveAddr(id, src, dst, clock.Time(m.TimeoutMS)*clock.Millisecond)
		x.boundReply(id, r)
		return err
	})
}

func (x cmSession) resolveRoute(m *abi.CMValueRequest, _ *reply) error {
	return x.withID(m.ID, x.s.CM.ResolveRoute)
}

func (x cmSession) listen(m *abi.CMValueRequest, r *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		err := x.s.CM.Listen(id, int(min(m.Value, 1<<16)))
		x.boundReply(id, r)
		return err
	})
}

// pairOf is the queue pair that a connection parameter names; nil for none.
func (x cmSession) pairOf(p *abi.CMParam) (cm.QueuePair, error) {
	if int(p.PrivateDataLen) > abi.MaxPrivate {
		return nil, syscall.EINVAL
	}
	if p.QP == abi.NoHandle {
		return nil, nil
	}
	q, err := object[*qpObject](x.Session, p.QP)
	if err != nil {
		return nil, err
	}
	return connect.QueuePair(q.qp), nil
}

func (x cmSession) connect(m *abi.CMConnRequest, _ *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		qp, err := x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return x.s.CM.Connect(id, qp, convert.Param(&m.Param))
	})
}

func (x cmSession) accept(m *abi.CMConnRequest, _ *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		qp, err := x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return x.s.CM.Accept(id, qp, convert.Param(&m.Param))
	})
}

func (x cmSession) reject(m *abi.CMConnRequest, _ *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		if _, err := x.pairOf(&m.Param); err != nil {
			return err
		}
		return x.s.CM.Reject(id, m.Param.Private())
	})
}

func (x cmSession) disconnect(m *abi.HandleMessage, _ *reply) error {
	return x.withID(m.Handle, x.s.CM.Disconnect)
}

// optionLevelID is RDMA_OPTION_ID of rdma_set_option(3).
const optionLevelID = 0

func (x cmSession) setOption(m *abi.CMSetOptionRequest, _ *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		if m.Level != optionLevelID {
			return syscall.ENOSYS
		}
		return x.s.CM.SetOption(id, cm.Option(m.OptName), m.Value)
	})
}

func (x cmSession) migrateID(m *abi.CMValueRequest, _ *reply) error {
	return x.withID(m.ID, func(id *cm.ID) error {
		c, err := object[*cmChannelObject](x.Session, m.Value)
		if err != nil {
			return err
		}
		x.s.CM.Migrate(id, c)
		return nil
	})
}

// wakeChannel makes a channel's socket readable: its client has events that it
// took from another.
func (x cmSession) wakeChannel(m *abi.HandleMessage, _ *reply) error {
	c, err := object[*cmChannelObject](x.Session, m.Handle)
	if err != nil {
		return err
	}
	x.do(func() { x.s.Engine.QPs.Events.Send(c.socket, abi.Bytes(&abi.CMEvent{Event: abi.CMWake})) })
	return nil
}
