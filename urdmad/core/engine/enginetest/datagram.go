package enginetest

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// QKey is the Q_Key of the queue pairs in a DatagramPair.
const QKey = 0x11111111

// DatagramPair is two UD or UC queue pairs with memory.
type DatagramPair struct {
	*World
	QA, QB *QP
	MA, MB *Region
}

// NewUDPair returns two UD queue pairs in RTS.
func NewUDPair(t *testing.T, local bool, o Options) *DatagramPair {
	o.Seed = 90
	u := &DatagramPair{World: New(t, o)}
	host := u.World.B
	if local {
		host = u.World.A
	}
	u.QA, u.QB = u.World.A.NewClient().NewDatagramQP(QKey), host.NewClient().NewDatagramQP(QKey)
	u.Register((*Client).Register, 1<<16)
	return u
}

// Register gives both ends other memory of n bytes.
func (u *DatagramPair) Register(register func(*Client, int, uint32) *Region, n int) {
	u.MA, u.MB = register(u.QA.Client, n, ReadWrite), register(u.QB.Client, n, ReadWrite)
	for i := range u.MA.Bytes {
		u.MA.Bytes[i] = byte(i*7 + i>>8)
	}
}

// ToB returns a UD Send to QB.
func (u *DatagramPair) ToB(id uint64) abi.SQE {
	return To(Send(id), u.QB.Client.Host.Addr, u.QB.Q.QPN, QKey)
}

// Send posts n bytes and expects the send to complete.
func (u *DatagramPair) Send(w abi.SQE, n int) {
	u.T.Helper()
	u.QA.Post(w, u.MA.SGE(0, n))
	if e := u.QA.Send.Completions(1)[0]; e.WRID != w.WRID || e.Status != abi.StatusSuccess || e.Opcode != abi.WCSend {
		u.T.Fatalf("send: %+v", e)
	}
}

// Stats returns the statistics of the receiver's host.
func (u *DatagramPair) Stats() datagram.Stats { return u.QB.Client.Host.Engine.Datagrams.Stats }

// GRH returns the header that precedes n bytes from QA.
func (u *DatagramPair) GRH(n int) []byte {
	b := make([]byte, wire.GRHLen)
	wire.PutGRH(b, u.QA.Client.Host.Addr, u.QB.Client.Host.Addr, 0, wire.UDPLen+wire.DatagramLen+n)
	return b
}

// maxMessage is the longest message of a host's queue pairs of a type.
func maxMessage(kind uint32, h *Host) uint32 {
	if kind == abi.QPTypeUD {
		return uint32(wire.MaxDatagram(h.Engine.Interface(0).MTU(), wire.IPLen(h.Engine.Interface(0).IP())))
	}
	return qp.MaxMessage
}

// NewUD returns a UD queue pair in RESET, with queues of its own.
func (c *Client) NewUD() *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 256}
	return c.newQP(abi.QPTypeUD, &want, c.NewCQ(72), c.NewCQ(72), nil)
}

// NewDatagramQP returns a UD queue pair in RTS.
func (c *Client) NewDatagramQP(qkey uint32) *QP { return c.datagramQP(qkey, c.NewUD()) }

// NewDatagramQP returns a UD queue pair in RTS that draws from the shared receive queue.
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

// ModifyNumber is ibv_modify_qp(3).
func (q *QP) ModifyNumber(mask uint32, a abi.QPAttr) (err error) {
	h := q.Client.Host
	h.Do(func() { err = h.Numbers.Modify(q.Q, 0, mask, &a) })
	if err == nil && mask&abi.QPMaskState != 0 && a.QPState == abi.QPSReset {
		q.Ring.Reset()
	}
	return err
}

// To sets the destination of a work request.
func To(w abi.SQE, ip netip.Addr, qpn, qkey uint32) abi.SQE {
	to := ip.As16()
	w.RemoteAddr = uint64(qkey)<<32 | uint64(qpn)
	w.CompareAdd, w.Swap = binary.NativeEndian.Uint64(to[:]), binary.NativeEndian.Uint64(to[8:])
	return w
}

// Group is a multicast group.
var Group = wire.IPv4{239, 1, 2, 3}

// ToGroup returns a Send to Group.
func ToGroup(id uint64) abi.SQE { return To(Send(id), netip.AddrFrom4(Group), 0xffffff, QKey) }

// Attach attaches a UD queue pair to a multicast group.
func (q *QP) Attach(g wire.IPv4) {
	h := q.Client.Host
	h.World.T.Helper()
	h.Do(func() {
		if err := h.Engine.Datagrams.Attach(q.Q, 0, netip.AddrFrom4(g)); err != nil {
			h.World.T.Error(err)
		}
	})
}
