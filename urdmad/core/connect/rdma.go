package connect

import (
	"net/netip"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/roce"
)

// managed sets up connections over RoCEv2, by InfiniBand's communication management.
type managed struct{ packets }

func (managed) MaxPrivate(k handshake.Kind) int { return roce.MaxPrivate[k] }
func (x managed) Send(m *cm.Message)            { x.e.RoCE.SendService(m) }

func (x managed) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	return x.managed(id, x.e.RoCE.Open(dev, netip.AddrPortFrom(x.e.Interface(dev).IP(), port), peer)), nil
}

// managedConn makes a connection over RoCEv2 a cm.Conn. Package roce recognises copies of a message. cm
// repeats requests and replies.
type managedConn struct {
	*roce.Conn
	side
}

func (n *network) managed(id *cm.ID, c *roce.Conn) *managedConn {
	k := &managedConn{c, side{id, &c.Connection}}
	c.Owner = k
	return k
}

func (k *managedConn) Send(m *cm.Message) { k.Conn.Send(m, k.qp()) }

func (k *managedConn) Start(s cm.Start) {
	k.agreed(&s)
	k.Conn.Start(QPOf(s.QP))
}

// Adopt implements cm.Arrived.
func (k *managedConn) Adopt(id *cm.ID) error {
	k.id = id
	return nil
}

// AskedFor implements roce.Handler.
func (n *network) AskedFor(c *roce.Conn, m *cm.Message) { n.m.Receive(n.managed(nil, c), m) }

// ServiceArrived implements roce.Handler.
func (n *network) ServiceArrived(m *cm.Message) { n.m.Receive(nil, m) }
