package connect

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/samehost"
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

// side is what the connections of ids have in common, whatever their carrier.
type side struct {
	id *cm.ID // nil before a request is adopted
	c  *qp.Connection
}

func (k *side) Owner() *cm.ID { return k.id }
func (k *side) Port() uint16  { return k.c.Local.Port() }

// qp returns the queue pair of the id, as far as it has one.
func (k *side) qp() *qp.QP {
	if k.id == nil {
		return nil
	}
	return QPOf(k.id.QueuePair())
}

// agreed records the parameters in force. It writes the time for which a silent peer is tolerated into the queue
// pair's attributes, and returns it, if the program has set it for the id; 0: it has not.
func (k *side) agreed(s *cm.Start) clock.Time {
	k.c.IRD, k.c.ORD, k.c.RNRRetry = s.IRD, s.ORD, s.RNRRetry
	if !s.AckTimeoutSet {
		return 0
	}
	a := &QPOf(s.QP).Attr
	a.Timeout, a.RetryCnt = uint32(s.AckTimeout), uint32(s.RetryCount)
	return qp.RetryTime(a)
}

// hostConn makes an end of a same-host connection a cm.Conn. Its handshake has no messages (cm/samehost.go).
type hostConn struct {
	*samehost.Conn
	side
}

func (k *hostConn) Send(*cm.Message) {}
func (k *hostConn) Abort()           { k.Disconnect() }
func (k *hostConn) Release()         {}

func (k *hostConn) Start(s cm.Start) {
	k.agreed(&s) // the patience is only to be queried: a connection within one urdmad is never silent
	k.Conn.Start(QPOf(s.QP))
}

// queuePair makes a queue pair a cm.QueuePair and a qpconnect.QueuePair.
type queuePair struct{ *qp.QP }

// Number implements cm.QueuePair.
func (q queuePair) Number() uint32 { return q.QPN }

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
