package control

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"syscall"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// QP is a queue pair with its rings.
type QP struct {
	object
	QP      *qp.QP
	bell    int // doorbell number
	Context *Context
	PD      *PD // nil for type XRC_RECV, which has the following fields instead, and no ring:
	xrcd    *XRCD
	target  *qp.Target
	ring    *memfd.Shared
}

func (x *Session) createQP(m *abi.CreateQPRequest, r *Reply) error {
	if m.QPType == abi.QPTypeXRCRecv {
		return x.createTarget(m, r)
	}
	pd, err := Find[*PD](x, m.PD)
	if err != nil {
		return err
	}
	send, err := Find[*CQ](x, m.SendCQ)
	if err != nil {
		return err
	}
	recv, err := x.receivesOn(m)
	if err != nil {
		return err
	}
	if err := checkPair(m, x.most()); err != nil {
		return err
	}
	shared, err := x.sharedQueue(m.SRQ)
	if err != nil {
		return err
	}
	resp := ring.QPLayout(m.Cap)
	resp.Cap.MaxInline = min(resp.Cap.MaxInline, x.most().MaxInline) // the limit that was reported can also be requested
	bill := &account.Amounts{account.QueuePairs: 1, account.QueueBytes: qp.PrivateBytes(&resp)}
	mem, at, err := x.queueMemory("urdma-qp", bill, ring.Heads(&resp), ring.Used(&resp))
	if err != nil {
		return err
	}
	if at.File != 0 {
		resp.Memfd = at.File
		ring.PlaceQP(&resp, at.Heads, at.Slots, uint32(len(mem.Mem)))
	}
	q := &QP{Context: pd.Context, PD: pd, ring: mem}
	q.QP = qp.New(qp.Config{Type: m.QPType, MaxMessage: x.s.maxMessage(m.QPType, pd.Context.Dev), Client: &x.client.Client,
		PD: pd.Number, SendCQ: send.CQ, RecvCQ: recv, SRQ: shared,
		Async: pd.Context.Async, SigAll: m.SQSigAll != 0, Cap: resp.Cap, UserHandle: m.UserHandle,
		Ports: uint32(x.s.Ports(pd.Context.Dev))}, mem.Mem, &resp)
	dev := &x.s.Devices[pd.Context.Dev]
	x.Do(func() {
		if err = dev.pairs.Take(&x.Account, pd.Context.Dev, dev.Of, dev.MaxQP); err != nil {
			return
		}
		x.s.making(x, q.QP)
		if q.bell, err = x.w.Engine.AddQP(x.client, q.QP); err != nil {
			dev.pairs.Give(x.Owner.UID)
			return
		}
		q.QP.Handle = x.add(q, bill)
	})
	if err != nil {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	pd.users++
	resp.Handle, resp.QPN, resp.Doorbell = q.QP.Handle, q.QP.QPN, uint32(q.bell)
	*r = Respond(&resp)
	r.bring(mem)
	return nil
}

// receivesOn returns the completion queue of a queue pair's receives; nil if it has none.
func (x *Session) receivesOn(m *abi.CreateQPRequest) (*qp.CQ, error) {
	if m.QPType == abi.QPTypeXRCSend && m.RecvCQ == abi.NoHandle {
		return nil, nil
	}
	o, err := Find[*CQ](x, m.RecvCQ)
	if err != nil {
		return nil, err
	}
	return o.CQ, nil
}

func checkPair(m *abi.CreateQPRequest, most *abi.Device) error {
	c := &m.Cap
	switch {
	case m.QPType != abi.QPTypeRC && m.QPType != abi.QPTypeUC && m.QPType != abi.QPTypeUD &&
		m.QPType != abi.QPTypeXRCSend || m.XRCD != abi.NoHandle || m.CreateFlags != 0 || m.SourceQPN != 0:
		return syscall.EOPNOTSUPP
	case m.SRQ != abi.NoHandle && c.MaxRecvWR != 0, m.QPType == abi.QPTypeXRCSend &&
		(c.MaxRecvWR != 0 || m.SRQ != abi.NoHandle):
		return fmt.Errorf("control: max_recv_wr is %d for a queue pair of type %s that has no receive queue of its own: %w",
			c.MaxRecvWR, abi.QPTypeText(m.QPType), syscall.EINVAL)
	}
	for _, l := range []struct {
		name        string
		asked, most uint32
	}{
		{"max_send_wr", c.MaxSendWR, most.MaxQPWR}, {"max_recv_wr", c.MaxRecvWR, most.MaxQPWR},
		{"max_send_sge", c.MaxSendSGE, most.MaxSGE}, {"max_recv_sge", c.MaxRecvSGE, most.MaxSGE},
		{"max_inline_data", c.MaxInline, most.MaxInline},
	} {
		if l.asked > l.most {
			return fmt.Errorf("control: %s is %d, allowed: 0 to %d: %w", l.name, l.asked, l.most, syscall.EINVAL)
		}
	}
	return nil
}

// maxMessage returns the longest message of a port's queue pairs of a type.
func (s *Server) maxMessage(kind uint32, dev int) uint32 {
	if kind == abi.QPTypeUD {
		return s.Devices[dev].maxDatagram()
	}
	return qp.MaxMessage
}

func (q *QP) modifyQP(m *abi.ModifyQPRequest, r *Reply) (err error) {
	x := q.x
	m.Mask &^= qp.IgnoredAttributes(q.QP.Type)
	if m.Mask&abi.QPMaskQKey != 0 && m.Attr.QKey&qp.ControlledQKey != 0 && !x.Owner.MayUseControlledQKey(x.UnixConn) {
		return fmt.Errorf("control: the Q_Key %#x has the highest bit, which is for management datagrams, and the client has no CAP_NET_RAW: %w", m.Attr.QKey, syscall.EPERM)
	}
	if err = qp.CheckReads(m.Mask, &m.Attr, x.most().MaxRdAtom); err == nil {
		x.Do(func() { err = q.modify(m.Mask, &m.Attr) })
	}
	if errors.Is(err, qp.ErrTransition) || errors.Is(err, qp.ErrAttribute) {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	if err != nil {
		return err
	}
	return q.queryQP(nil, r)
}

// Port returns the port that the queue pair uses: the first of its device, unless ibv_modify_qp
// has set another; on the engine's thread.
func (q *QP) Port() int { return q.Context.Dev + max(int(q.QP.Attr.PortNum), 1) - 1 }

// modify modifies a queue pair within the limits of the port that the attributes name; on the
// engine's thread.
func (q *QP) modify(mask uint32, a *abi.QPAttr) error {
	port := q.Port()
	if mask&abi.QPMaskPort != 0 && a.PortNum >= 1 && a.PortNum <= q.QP.Ports { // other port numbers are refused later
		port = q.Context.Dev + int(a.PortNum) - 1
	}
	if err := q.x.w.Numbers.Modify(q.QP, port, mask, a); err != nil {
		return err
	}
	if mask&abi.QPMaskPort != 0 {
		q.QP.MaxMessage = q.x.s.maxMessage(q.QP.Type, port)
	}
	return nil
}

// PeerReads returns how many Reads and atomics the peer of a queue pair connected by
// ibv_modify_qp serves at once. It returns the largest number if that is unknown, because
// InfiniBand's packets do not carry it.
func PeerReads(q *qp.QP) uint32 {
	_, waits := q.Carrier().(*connect.Awaiting)
	if c := q.Connection(); c != nil && c.ByNumber && !waits {
		return uint32(c.ORD)
	}
	return math.MaxUint32
}

func (q *QP) queryQP(_ *abi.HandleMessage, r *Reply) error {
	var resp abi.QueryQPResponse
	q.x.Do(func() {
		resp.Attr, resp.Cap = q.QP.Attr, q.QP.Cap
		resp.Attr.QPState, resp.Attr.CurQPState = q.QP.State(), q.QP.State()
		if q.QP.SQ.Draining() {
			resp.Attr.SQDraining = 1
		}
		if q.QP.SigAll {
			resp.SQSigAll = 1
		}
		if q.QP.Unready() {
			resp.Unready = 1
		}
		resp.PeerReads = PeerReads(q.QP)
	})
	*r = Respond(&resp)
	return nil
}

func (q *QP) destroyQP(*abi.HandleMessage, *Reply) error {
	x, busy := q.x, false
	x.Do(func() { busy = x.w.Engine.Datagrams.Attached(q.QP) > 0 })
	if busy {
		return fmt.Errorf("control: the queue pair is attached to groups (ibv_detach_mcast(3)): %w", syscall.EBUSY)
	}
	x.sendLast(q.QP.SendLast)
	x.Do(func() {
		x.removeQP(q)
		q.remove()
	})
	if q.target != nil {
		q.xrcd.users--
		return nil
	}
	q.PD.users--
	q.ring.Close()
	return nil
}

func (q *QP) attachMcast(m *abi.McastRequest, _ *Reply) error {
	return q.mcast(m, (*datagram.Stack).Attach)
}

func (q *QP) detachMcast(m *abi.McastRequest, _ *Reply) error {
	return q.mcast(m, (*datagram.Stack).Detach)
}

// mcast attaches a queue pair to a multicast group, or detaches it.
func (q *QP) mcast(m *abi.McastRequest, change func(*datagram.Stack, *qp.QP, int, netip.Addr) error) (err error) {
	group := m.Group.AddrPort().Addr().WithZone("").Unmap()
	if q.QP.Type != abi.QPTypeUD {
		return fmt.Errorf("control: a queue pair of type %s, and groups are for UD: %w", abi.QPTypeText(q.QP.Type),
			syscall.EINVAL)
	}
	q.x.Do(func() {
		if q.QP.Ports > 1 && q.QP.Attr.PortNum == 0 {
			err = fmt.Errorf("control: a queue pair in RESET has none of the %d ports of %s yet, and groups are a port's: %w",
				q.QP.Ports, q.x.s.Devices[q.Context.Dev].Of, syscall.EINVAL)
			return
		}
		err = change(q.x.w.Engine.Datagrams, q.QP, q.Port(), group)
	})
	return err
}
