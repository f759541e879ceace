package enginetest

import (
	"encoding/binary"
	"net/netip"

	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// maxMessage is the longest message of a host's queue pairs of a type.
func maxMessage(kind uint32, h *Host) uint32 {
	if kind == abi.QPTypeUD {
		return uint32(wire.MaxDatagram(h.Engine.Interface(0).MTU(), wire.IPLen(h.Engine.Interface(0).IP())))
	}
	return qp.MaxMessage
}

// NewDatagramQP makes a queue pair of type UD in RTS, with queues of its own.
func (c *Client) NewDatagramQP(qkey uint32) *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256}
	return c.datagramQP(qkey, c.newQP(abi.QPTypeUD, &want, c.NewCQ(72), c.NewCQ(72), nil))
}

// NewDatagramQP is Client's, of one that draws from the queue.
func (s *SRQ) NewDatagramQP(qkey uint32, recv *CQ) *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxSendSGE: 4, MaxInline: 64}
	return s.Client.datagramQP(qkey, s.Client.newQP(abi.QPTypeUD, &want, s.Client.NewCQ(72), recv, s))
}

func (c *Client) datagramQP(qkey uint32, q *QP) *QP {
	c.Host.World.T.Helper()
	for _, to := range []struct{ mask, state uint32 }{
		{abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey, abi.QPSInit},
		{abi.QPMaskState, abi.QPSRTR},
		{abi.QPMaskState | abi.QPMaskSQPSN, abi.QPSRTS},
	} {
		if err := q.ModifyNumber(to.mask, abi.QPAttr{QPState: to.state, PortNum: 1, QKey: qkey}); err != nil {
			c.Host.World.T.Fatal(err)
		}
	}
	return q
}

// ModifyNumber is MODIFY_QP.
func (q *QP) ModifyNumber(mask uint32, a abi.QPAttr) (err error) {
	h := q.Client.Host
	h.Do(func() { err = h.Numbers.Modify(q.Q, 0, mask, &a) })
	if err == nil && mask&abi.QPMaskState != 0 && a.QPState == abi.QPSReset {
		q.Ring.Reset()
	}
	return err
}

// To gives a work request its destination.
func To(w abi.SQE, ip netip.Addr, qpn, qkey uint32) abi.SQE {
	to := ip.As16()
	w.RemoteAddr = uint64(qkey)<<32 | uint64(qpn)
	w.CompareAdd, w.Swap = binary.NativeEndian.Uint64(to[:]), binary.NativeEndian.Uint64(to[8:])
	return w
}
