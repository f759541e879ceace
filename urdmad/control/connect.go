package control

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
)

// EventChannel is an rdma_cm event channel. It implements cm.Channel.
type EventChannel struct {
	object
	Socket *events.Socket
	ids    int // number of ids that report here; on the engine's thread
}

// count adds by to the number of ids of id's channel.
func count(id *cm.ID, by int) { id.Channel.(*EventChannel).ids += by }

// Deliver implements cm.Channel; on the engine's thread.
func (c *EventChannel) Deliver(e *cm.Event) {
	v := &c.x.w.event
	*v = eventOf(e)
	v.Local, v.Peer = c.x.s.addr(e.Local, e.Dev), c.x.s.addr(e.Peer, e.Dev)
	if !c.x.s.keepsBack(c, e, v) {
		c.Send(v)
	}
}

func (x *Session) createChannel(_ *abi.Header, r *Reply) error {
	var resp abi.HandleMessage
	s, bill, err := x.newEvents(account.EventChannels, r)
	if err != nil {
		return err
	}
	r.Body = abi.Bytes(&resp)
	x.Do(func() { resp.Handle = x.add(&EventChannel{Socket: s}, bill) })
	return nil
}

func (c *EventChannel) destroyChannel(*abi.HandleMessage, *Reply) (err error) {
	c.x.Do(func() {
		if c.ids > 0 {
			err = fmt.Errorf("control: the event channel still has %d ids: %w", c.ids, syscall.EBUSY)
			return
		}
		c.x.s.gone(c.x, c)
		c.Socket.Close()
		c.remove()
	})
	return err
}

func (c *EventChannel) createID(m *abi.CMCreateIDRequest, r *Reply) error {
	x := c.x
	switch m.PS {
	case abi.PSTCP, abi.PSUDP, abi.PSIB, abi.PSIPoIB: // all share one space of port numbers
	default:
		return fmt.Errorf("control: rdma_cm port space %#x; there are IPoIB, TCP, UDP and IB: %w", m.PS,
			syscall.EPROTONOSUPPORT)
	}
	if err := x.Take(&oneID); err != nil {
		return err
	}
	var resp abi.HandleMessage
	x.Do(func() {
		id := x.w.CM.Create(x, c)
		id.Datagrams = m.PS == abi.PSUDP || m.PS == abi.PSIPoIB
		x.addID(id)
		resp.Handle = id.Handle
	})
	*r = Respond(&resp)
	return nil
}

// Adopt implements cm.Owner: a connection request makes a new id of this client. It runs on the
// engine's thread.
func (x *Session) Adopt(id *cm.ID) bool {
	if x.ended || x.s.refuses(x, id.View().Peer) {
		return false
	}
	if err := x.Take(&oneID); err != nil {
		x.s.Log.Warn("connection request refused", "client", x.name, "error", err)
		return false
	}
	x.addID(id)
	return true
}

// oneSocket is the socket of an id over TCP.
var oneSocket = account.Amounts{account.Descriptors: 1}

// TakeSocket counts a socket for one of the client's ids; on the engine's thread.
func (x *Session) TakeSocket() error { return x.Take(&oneSocket) }

// GiveSocket undoes one TakeSocket.
func (x *Session) GiveSocket() { x.Give(&oneSocket) }

// ID is an rdma_cm id.
type ID struct {
	object
	*cm.ID
}

var oneID = account.Amounts{account.IDs: 1}

// addID gives an id its handle; on the engine's thread. The caller has taken oneID.
func (x *Session) addID(id *cm.ID) {
	id.Handle = x.add(&ID{ID: id}, &oneID)
	count(id, 1)
}

// Do runs fn on the engine's thread.
func (o *ID) Do(fn func() error) (err error) {
	o.x.Do(func() { err = fn() })
	return err
}

func (o *ID) destroyID(*abi.HandleMessage, *Reply) error {
	o.x.Do(func() {
		o.x.w.CM.Destroy(o.ID)
		count(o.ID, -1)
		o.remove()
	})
	return nil
}

// boundReply answers with the address to which an id is now bound.
func (o *ID) boundReply(r *Reply) {
	var resp abi.CMBound
	local, dev := o.Bound()
	resp.Local, resp.Device = o.x.s.addr(local, dev), deviceNumber(dev)
	*r = Respond(&resp)
}

// sessionEndTimeout is how long a bind waits for another session's end, which takes long if its
// thread gets no CPU.
const sessionEndTimeout = 10 * time.Second

// bind binds an id to an address. A program that was just killed may still hold the port number,
// until its session has noticed the hang-up. The kernel closes sockets before the parent learns
// of the death, so a restarted server expects to bind at once; bind therefore waits for an ending
// holder. If the holder is alive, bind fails at once.
func (o *ID) bind(m *abi.CMBindRequest, r *Reply) error {
	addr, err := addrPortOf(m.Addr)
	if err != nil {
		return err
	}
	if !o.x.Owner.MayBind(o.x.UnixConn, addr.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", addr.Port(),
			syscall.EACCES)
	}
	limit := time.NewTimer(sessionEndTimeout)
	defer limit.Stop()
	again := len(o.x.s.Workers) == 1
	for {
		var holders []cm.Owner
		o.x.Do(func() {
			err = o.x.w.CM.Bind(o.ID, addr)
			o.boundReply(r)
			if errors.Is(err, syscall.EADDRINUSE) {
				holders = o.x.w.CM.Holders(o.ID, addr)
			}
		})
		if errors.Is(err, syscall.EADDRINUSE) && len(holders) == 0 {
			if holders = o.holdersElsewhere(addr); len(holders) == 0 && !again { // the holder may be gone by now
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

// holdersElsewhere returns the holders of addr among the clients of other workers.
func (o *ID) holdersElsewhere(addr netip.AddrPort) (holders []cm.Owner) {
	for _, w := range o.x.s.Workers {
		if w != o.x.w {
			w.Do(func() { holders = append(holders, w.CM.Holders(o.ID, addr)...) })
		}
	}
	return holders
}

// endingOf returns a session among the holders whose client has hung up, or nil.
func endingOf(holders []cm.Owner) *Session {
	for _, h := range holders {
		if y, ok := h.(*Session); ok && y.HungUp() {
			return y
		}
	}
	return nil
}

func (o *ID) resolveAddr(m *abi.CMResolveAddrRequest, r *Reply) error {
	src, err := addrPortOf(m.Src)
	if err != nil {
		return err
	}
	dst, err := addrPortOf(m.Dst)
	if err != nil {
		return err
	}
	if !o.x.Owner.MayBind(o.x.UnixConn, src.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", src.Port(),
			syscall.EACCES)
	}
	return o.Do(func() error {
		err := o.x.w.CM.ResolveAddr(o.ID, src, dst, clock.Time(m.TimeoutMS)*clock.Millisecond)
		o.boundReply(r)
		if errors.Is(err, syscall.ENETUNREACH) {
			_, dev := o.Bound()
			return &NoRoute{To: dst.Addr(), From: dev}
		}
		return err
	})
}

// NoRoute is the error for an address to which no port leads.
type NoRoute struct {
	To   netip.Addr
	From int // the only port that the program allows; -1: any
}

func (*NoRoute) Error() string { return syscall.ENETUNREACH.Error() }
func (*NoRoute) Unwrap() error { return syscall.ENETUNREACH }

func (o *ID) resolveRoute(*abi.CMValueRequest, *Reply) error {
	return o.Do(func() error { return o.x.w.CM.ResolveRoute(o.ID) })
}

func (o *ID) listen(m *abi.CMValueRequest, r *Reply) error {
	return o.Do(func() error {
		err := o.x.w.CM.Listen(o.ID, int(min(m.Value, 1<<16)))
		o.boundReply(r)
		return err
	})
}

// pairOf returns the queue pair that connection parameters name; nil for none.
func (x *Session) pairOf(p *abi.CMParam) (cm.QueuePair, error) {
	if int(p.PrivateDataLen) > abi.MaxPrivate {
		return nil, fmt.Errorf("control: %d bytes of private data, %d at most: %w", p.PrivateDataLen, abi.MaxPrivate,
			syscall.EINVAL)
	}
	if p.QP == abi.NoHandle {
		return nil, nil
	}
	q, err := Find[*QP](x, p.QP)
	if err != nil {
		return nil, err
	}
	return connect.QueuePair(q.QP), nil
}

func (o *ID) connect(m *abi.CMConnRequest, _ *Reply) error {
	return o.Do(func() error {
		qp, err := o.x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return o.x.w.CM.Connect(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *ID) accept(m *abi.CMConnRequest, _ *Reply) error {
	return o.Do(func() error {
		qp, err := o.x.pairOf(&m.Param)
		if err != nil {
			return err
		}
		return o.x.w.CM.Accept(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *ID) reject(m *abi.CMConnRequest, _ *Reply) error {
	return o.Do(func() error {
		if _, err := o.x.pairOf(&m.Param); err != nil {
			return err
		}
		return o.x.w.CM.Reject(o.ID, m.Param.Private())
	})
}

func (o *ID) disconnect(*abi.HandleMessage, *Reply) error {
	return o.Do(func() error { return o.x.w.CM.Disconnect(o.ID) })
}

// optionLevelID is RDMA_OPTION_ID of rdma_set_option(3).
const optionLevelID = 0

func (o *ID) setOption(m *abi.CMSetOptionRequest, _ *Reply) error {
	return o.Do(func() error {
		if m.Level != optionLevelID {
			return fmt.Errorf("control: rdma_set_option of level %d, there is %d (RDMA_OPTION_ID): %w", m.Level, optionLevelID,
				syscall.ENOSYS)
		}
		return o.x.w.CM.SetOption(o.ID, cm.Option(m.OptName), m.Value)
	})
}

func (o *ID) migrateID(m *abi.CMValueRequest, _ *Reply) error {
	c, err := Find[*EventChannel](o.x, m.Value)
	if err != nil {
		return err
	}
	o.x.Do(func() {
		count(o.ID, -1)
		o.x.w.CM.Migrate(o.ID, c)
		count(o.ID, 1)
	})
	return nil
}

// wakeChannel makes a channel's socket readable, because its client has received events that it
// took from another channel.
func (c *EventChannel) wakeChannel(*abi.HandleMessage, *Reply) error {
	c.x.Do(func() { c.x.w.Engine.QPs.Events.Send(c.Socket, abi.Bytes(&abi.CMEvent{Event: abi.CMWake})) })
	return nil
}
