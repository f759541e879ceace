package connect

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/qpconnect"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/wire"
	"urdma/wire/ibcm"
)

// New returns the connection managers of an engine that has no ports yet: the manager of rdma_cm ids, and
// that of queue pairs connected by number. It sets the network of the configuration; addresses are those of
// the ports, in the order in which they are added.
func New(e *engine.Engine, c cm.Config) (*cm.Manager, *Numbers) {
	n := &network{e: e}
	c.Network = n
	for i := 0; i < len(c.Secret); i += 4 {
		binary.BigEndian.PutUint32(c.Secret[i:], e.TRP.Random())
	}
	n.m = cm.New(c)
	n.numbers = &Numbers{n: n, addrs: c.Addrs}
	n.numbers.m = qpconnect.New(qpconnect.Config{Network: &numberNetwork{n}, Log: c.Log, Addrs: c.Addrs,
		Timeout:   c.Timeout,
		Elsewhere: func(q wire.QPN) bool { return e.QPs.Elsewhere(uint32(q)) }})
	e.SetHandler(n)
	return n.m, n.numbers
}

// network is the network of the connection manager, with an engine's carriers and interfaces. It is also
// the handler of these carriers, and passes their calls to the manager.
type network struct {
	e       *engine.Engine
	m       *cm.Manager
	numbers *Numbers
}

func (n *network) Now() clock.Time                   { return n.e.Clock.Now }
func (n *network) Set(t *clock.Timer, at clock.Time) { n.e.Clock.Set(t, at) }
func (n *network) Soon(fn func())                    { n.e.Clock.Soon(fn) }

func (n *network) NextHop(dev int, dst netip.Addr) (netip.Addr, bool) {
	return n.e.Interface(dev).NextHop(dst)
}

// Resolve implements cm.Network. Links are of type netif.Link.
func (n *network) Resolve(dev int, hop, dst netip.Addr, done func(cm.Link, bool)) {
	at := n.e.Interface(dev)
	at.Resolve(hop, func(l netif.Link, ok bool) {
		if !ok {
			done(l, false)
			return
		}
		at.Look(dst, l, func() { done(l, true) })
	})
}

// Home implements cm.Network.
func (n *network) Home(dev int) cm.Link { return n.e.Interface(dev).Link() }

// MaxPrivate implements cm.Network.
func (n *network) MaxPrivate(dev int, op wire.TRPOp) int {
	if !n.e.SpeaksRoCE(dev) {
		return wire.MaxPrivateData
	}
	switch op {
	case wire.OpRequest:
		return ibcm.MaxPrivate
	case wire.OpAccept:
		return ibcm.MaxReply
	case wire.OpResolve:
		return ibcm.MaxServicePrivate
	case wire.OpResolved:
		return ibcm.MaxServiceReply
	default:
		return ibcm.MaxReject
	}
}

func (n *network) Send(p *cm.Packet) {
	switch k := p.Conn.(type) {
	case *streamConn:
		k.send(n, p)
		return
	case *packetConn:
		k.send(n, p)
		return
	}
	if n.e.SpeaksRoCE(p.Dev) {
		n.say(p)
		return
	}
	n.e.TRP.SendControl(packet(p))
}

func (n *network) Listen(id *cm.ID, dev int) error {
	if !n.e.OverTCP(dev) {
		return nil
	}
	give, err := socketOf(id)
	if err != nil {
		return err
	}
	if err = n.e.MPA.Listen(dev, n.listenAddr(id, dev)); err != nil {
		give()
	}
	return err
}

func (n *network) Unlisten(id *cm.ID, dev int) {
	if n.e.OverTCP(dev) {
		n.e.MPA.Unlisten(n.listenAddr(id, dev))
		if o, ok := id.Owner.(socketOwner); ok {
			o.GiveSocket()
		}
	}
}

// listenAddr returns the address at which requests for an id arrive at a device.
func (n *network) listenAddr(id *cm.ID, dev int) netip.AddrPort {
	local, _ := id.Bound()
	return netip.AddrPortFrom(n.e.Interface(dev).IP(), local.Port())
}

// socketOwner is an owner of ids with a limit on its sockets.
type socketOwner interface {
	TakeSocket() error // counts one more socket, or refuses it
	GiveSocket()       // undoes one TakeSocket
}

// socketOf counts a socket of an id's owner; give, or the owner's GiveSocket, undoes it.
func socketOf(id *cm.ID) (give func(), err error) {
	if o, ok := id.Owner.(socketOwner); ok {
		return o.GiveSocket, o.TakeSocket()
	}
	return func() {}, nil
}

func packet(p *cm.Packet) *trp.ControlPacket {
	link, _ := p.Link.(netif.Link)
	return &trp.ControlPacket{Dev: p.Dev, Link: link, Local: p.Local, Peer: p.Peer, TRP: p.TRP, Connect: p.Connect}
}

func (n *network) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	if n.e.SpeaksRoCE(dev) {
		return n.packets(id, n.e.RoCE.Open(dev, netip.AddrPortFrom(n.e.Interface(dev).IP(), port), peer)), nil
	}
	if n.e.OverTCP(dev) {
		give, err := socketOf(id)
		if err != nil {
			return nil, err
		}
		c := n.e.MPA.Open(dev, netip.AddrPortFrom(n.e.Interface(dev).IP(), port), peer)
		c.Paid = give
		return n.stream(id, c), nil
	}
	c, err := n.e.TRP.Open(dev, port, peer)
	if errors.Is(err, trp.ErrPortInUse) {
		return nil, syscall.EADDRINUSE
	}
	if err != nil {
		return nil, err
	}
	k := &wireConn{c, id}
	c.Owner = k
	return k, nil
}

// Adopt implements cm.Network.
func (n *network) Adopt(id *cm.ID, c cm.Conn) (cm.Conn, error) {
	if k, ok := c.(*packetConn); ok {
		k.id = id
		return k, nil
	}
	k := c.(*streamConn)
	give, err := socketOf(id)
	if err != nil {
		k.Release()
		return nil, err
	}
	k.id, k.Paid = id, give
	return k, nil
}

// Withdrawn implements cm.Network.
func (n *network) Withdrawn(c cm.Conn) bool { return c.(interface{ Withdrawn() bool }).Withdrawn() }

func (n *network) ConnAt(dev int, port uint16) cm.Conn {
	c := n.e.TRP.Port(dev).Conn(port)
	if c == nil {
		return nil
	}
	if k, ok := c.Owner.(*wireConn); ok {
		return k
	}
	return &wireConn{c, nil} // a connection by number has the port number
}

func (n *network) Join(a, b cm.End) (cm.Conn, cm.Conn) {
	ca, cb := n.end(a), n.end(b)
	samehost.Join(ca.Conn, cb.Conn)
	return ca, cb
}

func (n *network) end(e cm.End) *hostConn {
	k := &hostConn{n.e.SameHost.Open(e.Dev, e.Local, e.Peer), e.ID}
	k.Conn.Owner = k
	return k
}

// Handshake implements trp.Handler.
func (n *network) Handshake(dev int, d *netif.Datagram, t *wire.TRP, body []byte) {
	p := &cm.Packet{Dev: dev, Link: d.Link, TRP: *t, Local: d.Dst, Peer: d.Src}
	if !n.numbers.handshake(p, body) {
		n.m.Receive(p, body)
	}
}

// Established implements qp.Manager.
func (n *network) Established(c *qp.Connection) {
	if v := PairOf(c); v != nil {
		n.numbers.m.Established(v)
		return
	}
	n.m.Established(IDOf(c))
}

// Closed implements qp.Manager.
func (n *network) Closed(c *qp.Connection, why qp.CloseReason) {
	if v := PairOf(c); v != nil {
		n.numbers.m.Closed(v, c.QP == nil)
		return
	}
	reason := cm.EndOrderly
	if why.Dead() {
		reason = cm.EndSilent
	}
	n.m.Closed(IDOf(c), reason)
}
