package connect

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/mpa"
)

// streams sets up connections over TCP. Ids with datagrams use packets there, too.
type streams struct{ packets }

func (x streams) Listen(id *cm.ID, dev int) error {
	give, err := socketOf(id)
	if err != nil {
		return err
	}
	if err = x.e.MPA.Listen(dev, x.listenAddr(id, dev)); err != nil {
		give()
	}
	return err
}

func (x streams) Unlisten(id *cm.ID, dev int) {
	x.e.MPA.Unlisten(x.listenAddr(id, dev))
	if o, ok := id.Owner.(socketOwner); ok {
		o.GiveSocket()
	}
}

// listenAddr returns the address at which requests for an id arrive at a device.
func (x streams) listenAddr(id *cm.ID, dev int) netip.AddrPort {
	local, _ := id.Bound()
	return netip.AddrPortFrom(x.e.Interface(dev).IP(), local.Port())
}

func (x streams) Open(id *cm.ID, dev int, port uint16, peer netip.AddrPort) (cm.Conn, error) {
	give, err := socketOf(id)
	if err != nil {
		return nil, err
	}
	c := x.e.MPA.Open(dev, netip.AddrPortFrom(x.e.Interface(dev).IP(), port), peer)
	c.Paid = give
	return x.stream(id, c), nil
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

// streamConn makes a connection over TCP a cm.Conn. Its handshake is a request and a reply, which TCP neither loses
// nor repeats. When cm repeats a request, TCP's state shows whether the peer's host still answers.
type streamConn struct {
	*mpa.Conn
	side
}

func (n *network) stream(id *cm.ID, c *mpa.Conn) *streamConn {
	k := &streamConn{c, side{id, &c.Connection}}
	c.Owner = k
	return k
}

func (k *streamConn) Send(m *cm.Message) { k.Conn.Send(m, k.qp()) }

func (k *streamConn) Start(s cm.Start) {
	k.Conn.Start(mpa.Start{QP: QPOf(s.QP), Passive: s.Passive, Patience: k.agreed(&s)})
}

// Adopt implements cm.Arrived.
func (k *streamConn) Adopt(id *cm.ID) error {
	give, err := socketOf(id)
	if err != nil {
		k.Release()
		return err
	}
	k.id, k.Paid = id, give
	return nil
}

// Requested implements mpa.Handler.
func (n *network) Requested(c *mpa.Conn, m *cm.Message) { n.m.Receive(n.stream(nil, c), m) }

// Refused implements mpa.Handler.
func (n *network) Refused(c *mpa.Conn, errno syscall.Errno) { n.m.Refused(IDOf(&c.Connection), errno) }
