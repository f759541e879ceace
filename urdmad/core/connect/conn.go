package connect

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/wire"
)

// IDOf returns the id whose connection c is; nil for none.
func IDOf(c *qp.Connection) *cm.ID {
	if c == nil {
		return nil
	}
	k, ok := c.Owner.(interface{ Owner() *cm.ID })
	if !ok {
		return nil
	}
	return k.Owner()
}

// Common returns the part of the connection behind c that all carriers have; nil for nil.
func Common(c cm.Conn) *qp.Connection {
	if c == nil {
		return nil
	}
	return c.(interface{ Common() *qp.Connection }).Common()
}

// wireConn makes a TRP connection a cm.Conn.
type wireConn struct {
	*trp.Conn
	id *cm.ID
}

func (k *wireConn) Owner() *cm.ID        { return k.id }
func (k *wireConn) Port() uint16         { return k.Local.Port() }
func (k *wireConn) PeerAddr() netip.Addr { return k.Peer.Addr() }
func (k *wireConn) ISN() wire.PSN        { return k.LocalISN }
func (k *wireConn) Acknowledge()         { k.AcknowledgeNow() }

func (k *wireConn) Extension(q cm.QueuePair) wire.TRPExtension { return k.Conn.Extension(QPOf(q)) }

func (k *wireConn) Start(s cm.Start) {
	link, _ := s.Link.(netif.Link)
	k.Peer = netip.AddrPortFrom(k.Peer.Addr(), s.PeerPort)
	k.IRD, k.ORD, k.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	k.Conn.Start(trp.Start{QP: QPOf(s.QP), Link: link, PeerISN: s.PeerISN, Peer: s.Extension,
		Passive: s.Passive, Patience: patience(&s)})
}

// patience writes the time for which a silent peer is tolerated into the queue pair's attributes, and
// returns it, if the program has set it for the id; 0: it has not.
func patience(s *cm.Start) clock.Time {
	if !s.AckTimeoutSet {
		return 0
	}
	a := &QPOf(s.QP).Attr
	a.Timeout, a.RetryCnt = uint32(s.AckTimeout), uint32(s.RetryCount)
	return qp.RetryTime(a)
}

// hostConn makes an end of a same-host connection a cm.Conn. The methods for the wire do nothing.
type hostConn struct {
	*samehost.Conn
	id *cm.ID
}

func (k *hostConn) Owner() *cm.ID                            { return k.id }
func (k *hostConn) Port() uint16                             { return k.Local.Port() }
func (k *hostConn) PeerAddr() netip.Addr                     { return k.Peer.Addr() }
func (k *hostConn) ISN() wire.PSN                            { return 0 }
func (k *hostConn) Acknowledge()                             {}
func (k *hostConn) Abort()                                   { k.Disconnect() }
func (k *hostConn) Release()                                 {}
func (k *hostConn) Extension(cm.QueuePair) wire.TRPExtension { return wire.TRPExtension{} }

func (k *hostConn) Start(s cm.Start) {
	k.IRD, k.ORD, k.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	patience(&s) // only to be queried: a connection within one urdmad is never silent
	k.Conn.Start(QPOf(s.QP))
}

// queuePair makes a queue pair a cm.QueuePair and a qpconnect.QueuePair.
type queuePair struct{ *qp.QP }

// Number implements cm.QueuePair.
func (q queuePair) Number() wire.QPN { return wire.QPN(q.QPN) }

// Gone implements cm.QueuePair.
func (q queuePair) Gone() bool { return q.Removed() }

// QueuePair returns q as a cm.QueuePair; nil for nil.
func QueuePair(q *qp.QP) cm.QueuePair {
	if q == nil {
		return nil
	}
	return queuePair{q}
}

// QPOf returns the queue pair behind q; nil for nil.
func QPOf(q cm.QueuePair) *qp.QP {
	if q == nil {
		return nil
	}
	return q.(queuePair).QP
}
