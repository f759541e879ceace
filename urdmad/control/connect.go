package control

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urdma/inject"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
)

// cmChannelObject is an rdma_cm event channel: cm.Channel.
type cmChannelObject struct {
	object
	socket    *events.Socket
	ids       int           // that report here; the engine's thread
	late      []abi.CMEvent // kept back on purpose; the engine's thread
	lateTimer *clock.Timer  // sends those
}

// count counts an id among those of its channel, or no longer.
func count(id *cm.ID, by int) { id.Channel.(*cmChannelObject).ids += by }

// Deliver is cm.Channel's; on the engine's thread.
func (c *cmChannelObject) Deliver(e *cm.Event) {
	v := eventOf(e)
	v.Local, v.Peer = c.x.s.addr(e.Local, e.Dev), c.x.s.addr(e.Peer, e.Dev)
	c.x.noteCM(e, v)
	if (len(c.late) > 0 || len(c.x.faults.at[inject.CM]) > 0) && c.keptBack(v) {
		return
	}
	c.x.w.Engine.QPs.Events.Send(c.socket, abi.Bytes(v))
}

func (x *Session) createChannel(_ *abi.Header, r *reply) error {
	var resp abi.HandleMessage
	s, bill, err := x.newEvents(account.EventChannels, r)
	if err != nil {
		return err
	}
	r.body = abi.Bytes(&resp)
	x.do(func() { resp.Handle = x.add(&cmChannelObject{socket: s}, bill) })
	return nil
}

func (c *cmChannelObject) destroyChannel(*abi.HandleMessage, *reply) (err error) {
	c.x.do(func() {
		if c.ids > 0 {
			err = fmt.Errorf("control: the event channel still has %d ids: %w", c.ids, syscall.EBUSY)
			return
		}
		c.forgetLate()
		c.socket.Close()
		c.remove()
	})
	return err
}

func (c *cmChannelObject) createID(m *abi.CMCreateIDRequest, r *reply) error {
	x := c.x
	switch m.PS {
	case abi.PSTCP, abi.PSUDP, abi.PSIB, abi.PSIPoIB: // one space of port numbers serves all
	default:
		return fmt.Errorf("control: rdma_cm port space %#x; there are IPoIB, TCP, UDP and IB: %w", m.PS, syscall.EPROTONOSUPPORT)
	}
	if err := x.Take(&oneID); err != nil {
		return err
	}
	var resp abi.HandleMessage
	x.do(func() {
		id := x.w.CM.Create(x, c)
		id.Datagrams = m.PS == abi.PSUDP || m.PS == abi.PSIPoIB
		x.addID(id)
		resp.Handle = id.Handle
	})
	*r = respond(&resp)
	return nil
}

// Adopt is cm.Owner's: a connection request makes a new id of this client. It
// runs on the engine's thread.
func (x *Session) Adopt(id *cm.ID) bool {
	if x.ended || len(x.faults.at[inject.CM]) > 0 && x.rejects(id.View().Peer) {
		return false
	}
	if err := x.Take(&oneID); err != nil {
		x.s.Log.Warn("connection request refused", "client", x.name, "error", err)
		return false
	}
	x.addID(id)
	return true
}

// oneSocket is a socket of an id's, over TCP.
var oneSocket = account.Amounts{account.Descriptors: 1}

// TakeSocket counts a socket for one of the client's ids; on the engine's thread.
func (x *Session) TakeSocket() error { return x.Take(&oneSocket) }

// GiveSocket undoes one TakeSocket.
func (x *Session) GiveSocket() { x.Give(&oneSocket) }

// idObject is an rdma_cm id.
type idObject struct {
	object
	*cm.ID
}

var oneID = account.Amounts{account.IDs: 1}

// addID gives an id its handle, oneID being taken; on the engine's thread.
func (x *Session) addID(id *cm.ID) {
	id.Handle = x.add(&idObject{ID: id}, &oneID)
	count(id, 1)
}

// do runs fn on the engine's thread.
func (o *idObject) do(fn func() error) (err error) {
	o.x.do(func() { err = fn() })
	return err
}

func (o *idObject) destroyID(*abi.HandleMessage, *reply) error {
	o.x.do(func() {
		o.x.w.CM.Destroy(o.ID)
		count(o.ID, -1)
		o.remove()
	})
	return nil
}

// boundReply answers with where an id is bound now.
func (o *idObject) boundReply(r *reply) {
	var resp abi.CMBound
	local, dev := o.Bound()
	resp.Local, resp.Device = o.x.s.addr(local, dev), deviceNumber(dev)
	*r = respond(&resp)
}

// endPatience is how long a bind waits for a session that is ending, which takes
// long where its thread gets no processor.
const endPatience = 10 * time.Second

// bind binds. A program that was killed a moment ago may still hold the port
// number, until its session has heard of the hang-up: kernel sockets are closed
// before the parent learns of the death, so a restarted server expects to bind
// at once. If the holder is alive, the answer comes at once.
func (o *idObject) bind(m *abi.CMBindRequest, r *reply) error {
	addr, err := addrPortOf(m.Addr)
	if err != nil {
		return err
	}
	if !o.x.Owner.MayBind(o.x.UnixConn, addr.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", addr.Port(), syscall.EACCES)
	}
	limit := time.NewTimer(endPatience)
	defer limit.Stop()
	again := len(o.x.s.Workers) == 1
	for {
		var holders []cm.Owner
		o.x.do(func() {
			err = o.x.w.CM.Bind(o.ID, addr)
			o.boundReply(r)
			if errors.Is(err, syscall.EADDRINUSE) {
				holders = o.x.w.CM.Holders(o.ID, addr)
			}
		})
		if errors.Is(err, syscall.EADDRINUSE) && len(holders) == 0 {
			if holders = o.holdersElsewhere(addr); len(holders) == 0 && !again { // it may have gone since
				again = true
				continue
			}
		}
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

// holdersElsewhere are cm's holders that are clients of other workers.
func (o *idObject) holdersElsewhere(addr netip.AddrPort) (holders []cm.Owner) {
	for _, w := range o.x.s.Workers {
		if w != o.x.w {
			w.do(func() { holders = append(holders, w.CM.Holders(o.ID, addr)...) })
		}
	}
	return holders
}

// endingOf finds a session whose client has hung up.
func endingOf(holders []cm.Owner) *Session {
	for _, h := range holders {
		if y, ok := h.(*Session); ok && y.hungUp() {
			return y
		}
	}
	return nil
}

func (o *idObject) resolveAddr(m *abi.CMResolveAddrRequest, r *reply) error {
	src, err := addrPortOf(m.Src)
	if err != nil {
		return err
	}
	dst, err := addrPortOf(m.Dst)
	if err != nil {
		return err
	}
	if !o.x.Owner.MayBind(o.x.UnixConn, src.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", src.Port(), syscall.EACCES)
	}
	return o.do(func() error {
		err := o.x.w.CM.ResolveAddr(o.ID, src, dst, clock.Time(m.TimeoutMS)*clock.Millisecond)
		o.boundReply(r)
		return err
	})
}

func (o *idObject) resolveRoute(*abi.CMValueRequest, *reply) error {
	return o.do(func() error { return o.x.w.CM.ResolveRoute(o.ID) })
}

func (o *idObject) listen(m *abi.CMValueRequest, r *reply) error {
	return o.do(func() error {
		err := o.x.w.CM.Listen(o.ID, int(min(m.Value, 1<<16)))
		o.boundReply(r)
		return err
	})
}

// pairOf is the queue pair that a connection parameter names; nil for none.
func (x *Session) pairOf(p *abi.CMParam) (cm.QueuePair, error) {
	if int(p.PrivateDataLen) > abi.MaxPrivate {
		return nil, fmt.Errorf("control: %d bytes of private data, %d at most: %w", p.PrivateDataLen, abi.MaxPrivate, syscall.EINVAL)
	}
	if p.QP == abi.NoHandle {
		return nil, nil
	}
	q, err := find[*qpObject](x, p.QP)
	if err != nil {
		return nil, err
	}
	return connect.QueuePair(q.qp), nil
}

func (o *idObject) connect(m *abi.CMConnRequest, _ *reply) error {
	return o.do(func() error {
		qp, err := o.x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return o.x.w.CM.Connect(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *idObject) accept(m *abi.CMConnRequest, _ *reply) error {
	return o.do(func() error {
		qp, err := o.x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return o.x.w.CM.Accept(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *idObject) reject(m *abi.CMConnRequest, _ *reply) error {
	return o.do(func() error {
		if _, err := o.x.pairOf(&m.Param); err != nil {
			return err
		}
		return o.x.w.CM.Reject(o.ID, m.Param.Private())
	})
}

func (o *idObject) disconnect(*abi.HandleMessage, *reply) error {
	return o.do(func() error { return o.x.w.CM.Disconnect(o.ID) })
}

// optionLevelID is RDMA_OPTION_ID of rdma_set_option(3).
const optionLevelID = 0

func (o *idObject) setOption(m *abi.CMSetOptionRequest, _ *reply) error {
	return o.do(func() error {
		if m.Level != optionLevelID {
			return fmt.Errorf("control: rdma_set_option of level %d, there is %d (RDMA_OPTION_ID): %w", m.Level, optionLevelID, syscall.ENOSYS)
		}
		return o.x.w.CM.SetOption(o.ID, cm.Option(m.OptName), m.Value)
	})
}

func (o *idObject) migrateID(m *abi.CMValueRequest, _ *reply) error {
	c, err := find[*cmChannelObject](o.x, m.Value)
	if err != nil {
		return err
	}
	o.x.do(func() {
		count(o.ID, -1)
		o.x.w.CM.Migrate(o.ID, c)
		count(o.ID, 1)
	})
	return nil
}

// wakeChannel makes a channel's socket readable: its client has events that it
// took from another.
func (c *cmChannelObject) wakeChannel(*abi.HandleMessage, *reply) error {
	c.x.do(func() { c.x.w.Engine.QPs.Events.Send(c.socket, abi.Bytes(&abi.CMEvent{Event: abi.CMWake})) })
	return nil
}
