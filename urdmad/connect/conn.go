package connect

import (
	"net/netip"

	"urdma/urdmad/cm"
	"urdma/urdmad/engine"
	"urdma/wire"
)

// conn is an engine's connection as cm.Conn.
type conn struct {
	e  *engine.Engine
	c  *engine.Conn
	id *cm.ID
}

// own makes a connection an id's.
func (n *network) own(c *engine.Conn, id *cm.ID) *conn {
	k := &conn{n.e, c, id}
	c.Owner = k
	return k
}

// IDOf is the id that set a connection up; nil for none.
func IDOf(c *engine.Conn) *cm.ID {
	if c == nil {
		return nil
	}
	k, ok := c.Owner.(interface{ Owner() *cm.ID })
	if !ok {
		return nil
	}
	return k.Owner()
}

// EngineConn is the engine's connection behind c; nil for nil.
func EngineConn(c cm.Conn) *engine.Conn {
	if c == nil {
		return nil
	}
	return c.(*conn).c
}

func (k *conn) Owner() *cm.ID        { return k.id }
func (k *conn) Port() uint16         { return k.c.LocalPort }
func (k *conn) PeerAddr() netip.Addr { return netip.AddrFrom4(k.c.PeerIP) }
func (k *conn) ISN() wire.PSN        { return k.c.LocalISN }
func (k *conn) Acknowledge()         { k.c.AcknowledgeNow() }
func (k *conn) Disconnect()          { k.c.Disconnect() }
func (k *conn) Abort()               { k.c.Abort() }
func (k *conn) Release()             { k.c.Release() }

func (k *conn) Extension(qp cm.QueuePair) wire.TRPExtension {
	return k.e.Extension(k.c, EngineQP(qp))
}

func (k *conn) Start(s cm.Start) {
	mac, _ := s.Link.(wire.MAC)
	if !k.c.Local() {
		k.c.PeerPort = s.PeerPort
	}
	k.c.IRD, k.c.ORD, k.c.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	k.c.Start(engine.StartParams{QP: EngineQP(s.QP), MAC: mac, PeerISN: s.PeerISN, Peer: s.Extension, HasExt: s.Extended,
		Passive: s.Passive})
}

// queuePair is an engine's queue pair as cm.QueuePair.
type queuePair struct{ *engine.QP }

// Number is cm.QueuePair's.
func (q queuePair) Number() wire.QPN { return wire.QPN(q.QPN) }

// QueuePair is qp as the connection manager takes it; nil for nil.
func QueuePair(qp *engine.QP) cm.QueuePair {
	if qp == nil {
		return nil
	}
	return queuePair{qp}
}

// EngineQP is the engine's queue pair behind q; nil for nil.
func EngineQP(q cm.QueuePair) *engine.QP {
	if q == nil {
		return nil
	}
	return q.(queuePair).QP
}
