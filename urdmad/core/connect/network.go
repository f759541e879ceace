package connect

import (
	"encoding/binary"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/qpconnect"
	"urdma/urdmad/core/samehost"
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
		Timeout: c.Timeout, Elsewhere: e.QPs.Elsewhere})
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

// Wire implements cm.Network.
func (n *network) Wire(dev int) cm.Wire {
	switch {
	case n.e.SpeaksRoCE(dev):
		return managed{packets{n}}
	case n.e.OverTCP(dev):
		return streams{packets{n}}
	}
	return packets{n}
}

// Replied implements mpa.Handler and roce.Handler.
func (n *network) Replied(c *qp.Connection, m *cm.Message) { n.m.Receive(c.Owner.(cm.Conn), m) }

func (n *network) InUse(dev int, port uint16) bool { return n.e.TRP.Port(dev).Conn(port) != nil }

func (n *network) Join(a, b cm.End) (cm.Conn, cm.Conn) {
	ca, cb := n.end(a), n.end(b)
	samehost.Join(ca.Conn, cb.Conn)
	return ca, cb
}

func (n *network) end(e cm.End) *hostConn {
	c := n.e.SameHost.Open(e.Dev, e.Local, e.Peer)
	k := &hostConn{c, side{e.ID, &c.Connection}}
	c.Owner = k
	return k
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
