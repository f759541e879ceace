package watch

import (
	"urdma/urdmad/attach/tap"
	"urdma/urdmad/control/account"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// ownerOfNumber reports whether fn returns true for the owner of a queue pair.
func (c *capture) ownerOfNumber(n wire.QPN, fn func(*account.Owner) bool) bool {
	q := c.w.Engine.QPs.Pair(uint32(n))
	return q != nil && c.ownerOfClient(q.Client, fn)
}

func (c *capture) ownerOfClient(client *qp.Client, fn func(*account.Owner) bool) bool {
	v := watcherOf(client)
	return v != nil && fn(&v.x.Owner)
}

// namedPair returns the local queue pair named by a frame without a connection: a datagram
// (docs/WIRE.md chapters 10 and 13) or a connection request by queue pair number (chapter 9). ok
// means that the frame belongs to the owner of that queue pair, if there is one. A listener on
// the same UDP port number must not see it.
func namedPair(s *tap.Sight) (n wire.QPN, ok bool) {
	if s.Conn != nil || s.Foreign || s.Our.Port() != wire.DatagramPort {
		return 0, false
	}
	var private [maxHandshake]byte // a copy, because the peer of a memif can write to the frame
	b := private[:copy(private[:], s.Frame)]
	var f wire.Frame
	if f.Parse(b, len(s.Frame)) != nil || f.PayloadOff > len(b) {
		return 0, true
	}
	b = b[f.PayloadOff:min(len(b), f.PayloadOff+f.PayloadLen)]
	dst, src, ok := ends(b)
	if s.Out {
		return src, ok
	}
	return dst, ok
}

// maxHandshake is the length of the longest request with all headers.
const maxHandshake = wire.MaxHeaderLen + wire.TRPLen + wire.ConnectLen + wire.MaxPrivateData + wire.TRPByNumberLen

// ends returns the queue pairs that a packet names; ok is false for an rdma_cm request, which
// names none.
func ends(b []byte) (dst, src wire.QPN, ok bool) {
	op, _ := wire.PeekOp(b)
	switch op {
	case wire.OpDatagram:
		var d wire.Datagram
		_ = d.Parse(b) // a malformed header yields no queue pair
		return d.Dst, d.Src, true
	case wire.OpUC:
		var u wire.UC
		_, _ = u.Parse(b)
		return u.Dst, u.Src, true
	case wire.OpRequest:
		var c wire.TRPConnect
		if c.Parse(b[wire.TRPLen:]) == nil {
			return c.Ext.Target, c.Ext.QPN, c.Ext.ByNumber()
		}
	}
	return 0, 0, true
}
