package objects

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
)

// EventChannel is an rdma_cm event channel. It implements cm.Channel.
type EventChannel struct {
	control.Base
	Socket *events.Socket
	ids    int         // number of ids that report here; on the engine's thread
	event  abi.CMEvent // the event being delivered; here because each would be allocated
}

// count adds by to the number of ids of id's channel.
func count(id *cm.ID, by int) { id.Channel.(*EventChannel).ids += by }

// Deliver implements cm.Channel; on the engine's thread.
func (c *EventChannel) Deliver(e *cm.Event) {
	x := c.Session
	c.event = eventOf(x.Server(), e)
	if !x.Server().KeepsBack(x, c.Socket, e, &c.event) {
		x.Worker().Engine.QPs.Events.Send(c.Socket, abi.Bytes(&c.event))
	}
}

// End implements control.Object.
func (c *EventChannel) End() *memfd.Shared {
	c.Socket.Close()
	return nil
}

func createChannel(x *control.Session, _ *abi.Header, r *control.Reply) error {
	var resp abi.HandleMessage
	s, bill, err := x.NewEvents(account.EventChannels, r)
	if err != nil {
		return err
	}
	r.Body = abi.Bytes(&resp)
	x.Do(func() { resp.Handle = x.Add(&EventChannel{Socket: s}, bill) })
	return nil
}

func (c *EventChannel) destroyChannel(*abi.HandleMessage, *control.Reply) (err error) {
	c.Session.Do(func() {
		if c.ids > 0 {
			err = fmt.Errorf("control: the event channel still has %d ids: %w", c.ids, syscall.EBUSY)
			return
		}
		c.Session.Server().Gone(c.Session, c.Socket)
		c.Socket.Close()
		c.Remove()
	})
	return err
}

func (c *EventChannel) createID(m *abi.CMCreateIDRequest, r *control.Reply) error {
	x := c.Session
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
		id := x.Worker().CM.Create(Owner{x}, c)
		id.Datagrams = m.PS == abi.PSUDP || m.PS == abi.PSIPoIB
		addID(x, id)
		resp.Handle = id.Handle
	})
	*r = control.Respond(&resp)
	return nil
}

// Owner is a session as the owner of its ids. It implements cm.Owner.
type Owner struct{ *control.Session }

// Adopt makes a new id of the client for a connection request; on the engine's thread.
func (x Owner) Adopt(id *cm.ID) bool {
	if x.Gone() || x.Server().Refuses(x.Session, id.View().Peer) {
		return false
	}
	if err := x.Take(&oneID); err != nil {
		x.Server().Log.Warn("connection request refused", "client", x.Name(), "error", err)
		return false
	}
	addID(x.Session, id)
	return true
}

// oneSocket is the socket of an id over TCP.
var oneSocket = account.Amounts{account.Descriptors: 1}

// TakeSocket counts a socket for one of the client's ids; on the engine's thread.
func (x Owner) TakeSocket() error { return x.Take(&oneSocket) }

// GiveSocket undoes one TakeSocket.
func (x Owner) GiveSocket() { x.Give(&oneSocket) }

// ID is an rdma_cm id.
type ID struct {
	control.Base
	*cm.ID
}

var oneID = account.Amounts{account.IDs: 1}

// addID gives an id its handle; on the engine's thread. The caller has taken oneID.
func addID(x *control.Session, id *cm.ID) {
	id.Handle = x.Add(&ID{ID: id}, &oneID)
	count(id, 1)
}

// Do runs fn on the engine's thread.
func (o *ID) Do(fn func() error) (err error) {
	o.Session.Do(func() { err = fn() })
	return err
}

func (o *ID) destroyID(*abi.HandleMessage, *control.Reply) error {
	o.Session.Do(func() {
		o.Session.Worker().CM.Destroy(o.ID)
		count(o.ID, -1)
		o.Remove()
	})
	return nil
}

// boundReply answers with the address to which an id is now bound.
func (o *ID) boundReply(r *control.Reply) {
	var resp abi.CMBound
	local, dev := o.Bound()
	resp.Local, resp.Device = o.Session.Server().Addr(local, dev), deviceNumber(dev)
	*r = control.Respond(&resp)
}

// sessionEndTimeout is how long a bind waits for another session's end, which takes long if its
// thread gets no CPU.
const sessionEndTimeout = 10 * time.Second

// bind binds an id to an address. A program that was just killed may still hold the port number,
// until its session has noticed the hang-up. The kernel closes sockets before the parent learns
// of the death, so a restarted server expects to bind at once; bind therefore waits for an ending
// holder. If the holder is alive, bind fails at once.
func (o *ID) bind(m *abi.CMBindRequest, r *control.Reply) error {
	addr, err := addrPortOf(m.Addr)
	if err != nil {
		return err
	}
	if !o.Session.Owner.MayBind(o.Session.UnixConn, addr.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", addr.Port(),
			syscall.EACCES)
	}
	limit := time.NewTimer(sessionEndTimeout)
	defer limit.Stop()
	again := len(o.Session.Server().Workers) == 1
	for {
		var holders []cm.Owner
		o.Session.Do(func() {
			err = o.Session.Worker().CM.Bind(o.ID, addr)
			o.boundReply(r)
			if errors.Is(err, syscall.EADDRINUSE) {
				holders = o.Session.Worker().CM.Holders(o.ID, addr)
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
		case <-ending.Over():
		case <-limit.C:
			return err
		}
	}
}

// holdersElsewhere returns the holders of addr among the clients of other workers.
func (o *ID) holdersElsewhere(addr netip.AddrPort) (holders []cm.Owner) {
	for _, w := range o.Session.Server().Workers {
		if w != o.Session.Worker() {
			w.Do(func() { holders = append(holders, w.CM.Holders(o.ID, addr)...) })
		}
	}
	return holders
}

// endingOf returns a session among the holders whose client has hung up, or nil.
func endingOf(holders []cm.Owner) *control.Session {
	for _, h := range holders {
		if y, ok := h.(Owner); ok && y.HungUp() {
			return y.Session
		}
	}
	return nil
}

func (o *ID) resolveAddr(m *abi.CMResolveAddrRequest, r *control.Reply) error {
	src, err := addrPortOf(m.Src)
	if err != nil {
		return err
	}
	dst, err := addrPortOf(m.Dst)
	if err != nil {
		return err
	}
	if !o.Session.Owner.MayBind(o.Session.UnixConn, src.Port()) {
		return fmt.Errorf("control: port %d is privileged, and the client has no CAP_NET_BIND_SERVICE: %w", src.Port(),
			syscall.EACCES)
	}
	return o.Do(func() error {
		err := o.Session.Worker().CM.ResolveAddr(o.ID, src, dst, clock.Time(m.TimeoutMS)*clock.Millisecond)
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

func (o *ID) resolveRoute(*abi.CMValueRequest, *control.Reply) error {
	return o.Do(func() error { return o.Session.Worker().CM.ResolveRoute(o.ID) })
}

func (o *ID) listen(m *abi.CMValueRequest, r *control.Reply) error {
	return o.Do(func() error {
		err := o.Session.Worker().CM.Listen(o.ID, int(min(m.Value, 1<<16)))
		o.boundReply(r)
		return err
	})
}

// pairOf returns the queue pair that connection parameters name; nil for none.
func pairOf(x *control.Session, p *abi.CMParam) (cm.QueuePair, error) {
	if int(p.PrivateDataLen) > abi.MaxPrivate {
		return nil, fmt.Errorf("control: %d bytes of private data, %d at most: %w", p.PrivateDataLen, abi.MaxPrivate,
			syscall.EINVAL)
	}
	if p.QP == abi.NoHandle {
		return nil, nil
	}
	q, err := control.Find[*QP](x, p.QP)
	if err != nil {
		return nil, err
	}
	return connect.QueuePair(q.QP), nil
}

func (o *ID) connect(m *abi.CMConnRequest, _ *control.Reply) error {
	return o.Do(func() error {
		qp, err := pairOf(o.Session, &m.Param)
		if err != nil {
			return err
		}
		return o.Session.Worker().CM.Connect(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *ID) accept(m *abi.CMConnRequest, _ *control.Reply) error {
	return o.Do(func() error {
		qp, err := pairOf(o.Session, &m.Param)
		if err != nil {
			return err
		}
		return o.Session.Worker().CM.Accept(o.ID, qp, paramOf(&m.Param))
	})
}

func (o *ID) reject(m *abi.CMConnRequest, _ *control.Reply) error {
	return o.Do(func() error {
		if _, err := pairOf(o.Session, &m.Param); err != nil {
			return err
		}
		return o.Session.Worker().CM.Reject(o.ID, m.Param.Private())
	})
}

func (o *ID) disconnect(*abi.HandleMessage, *control.Reply) error {
	return o.Do(func() error { return o.Session.Worker().CM.Disconnect(o.ID) })
}

// optionLevelID is RDMA_OPTION_ID of rdma_set_option(3).
const optionLevelID = 0

func (o *ID) setOption(m *abi.CMSetOptionRequest, _ *control.Reply) error {
	return o.Do(func() error {
		if m.Level != optionLevelID {
			return fmt.Errorf("control: rdma_set_option of level %d, there is %d (RDMA_OPTION_ID): %w", m.Level, optionLevelID,
				syscall.ENOSYS)
		}
		return o.Session.Worker().CM.SetOption(o.ID, cm.Option(m.OptName), m.Value)
	})
}

func (o *ID) migrateID(m *abi.CMValueRequest, _ *control.Reply) error {
	c, err := control.Find[*EventChannel](o.Session, m.Value)
	if err != nil {
		return err
	}
	o.Session.Do(func() {
		count(o.ID, -1)
		o.Session.Worker().CM.Migrate(o.ID, c)
		count(o.ID, 1)
	})
	return nil
}

// wakeChannel makes a channel's socket readable, because its client has received events that it
// took from another channel.
func (c *EventChannel) wakeChannel(*abi.HandleMessage, *control.Reply) error {
	c.Session.Do(func() {
		c.Session.Worker().Engine.QPs.Events.Send(c.Socket, abi.Bytes(&abi.CMEvent{Event: abi.CMWake}))
	})
	return nil
}

// Rank implements control.Object.
func (o *ID) Rank() control.Rank { return control.RankID }

// End implements control.Object.
func (o *ID) End() *memfd.Shared {
	o.Session.Worker().CM.Destroy(o.ID)
	return nil
}

// addrPortOf converts a client's socket address; without an address family it is 0.0.0.0. The
// zone of a link-local address is an interface index.
func addrPortOf(a abi.Addr) (netip.AddrPort, error) {
	switch v := a.AddrPort(); a.Family {
	case syscall.AF_UNSPEC:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port()), nil
	case syscall.AF_INET, syscall.AF_INET6:
		return netip.AddrPortFrom(v.Addr().Unmap(), a.Port()), nil
	}
	return netip.AddrPort{}, syscall.EAFNOSUPPORT
}

// deviceNumber returns a device's number for clients; a negative dev means any device.
func deviceNumber(dev int) uint32 {
	if dev < 0 {
		return abi.NoDevice
	}
	return uint32(dev)
}

// paramOf converts a client's connection parameters.
func paramOf(p *abi.CMParam) *cm.Param {
	return &cm.Param{ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RNRRetryCount: p.RNRRetryCount, RetryCount: min(p.RetryCount, 7), QPN: p.QPNum, QKey: p.QKey,
		PrivateData: p.Private()}
}

// eventOf converts an event for clients of s. The event numbers on both sides are those of
// rdma_cma.h.
func eventOf(s *control.Server, e *cm.Event) abi.CMEvent {
	v := abi.CMEvent{Event: uint32(e.Kind), Status: -int32(e.Err), ID: e.ID.Handle, Device: deviceNumber(e.Dev),
		Local: s.Addr(e.Local, e.Dev), Peer: s.Addr(e.Peer, e.Dev),
		Param: abi.CMParam{ResponderResources: e.Param.ResponderResources, InitiatorDepth: e.Param.InitiatorDepth,
			QPNum: e.Param.QPN, QKey: e.Param.QKey}}
	if e.Reason != 0 {
		v.Status = int32(e.Reason) // the libraries have it be an errno where a device is shown as iWARP's
	}
	v.Param.SetPrivate(e.Param.PrivateData)
	if e.Child != nil {
		v.Child = e.Child.Handle
	}
	return v
}
