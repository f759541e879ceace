package objects

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"syscall"
	"time"

	"urdma/urdmad/control"
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
	control.Base
	QP      *qp.QP
	bell    int // doorbell number
	Context *Context
	PD      *PD // nil for type XRC_RECV, which has the following fields instead, and no ring:
	xrcd    *XRCD
	target  *qp.Target
	flows   int // of type RAW_PACKET
	ring    *memfd.Shared
}

func createQP(x *control.Session, m *abi.CreateQPRequest, r *control.Reply) error {
	if m.QPType == abi.QPTypeXRCRecv {
		return createTarget(x, m, r)
	}
	pd, err := control.Find[*PD](x, m.PD)
	if err != nil {
		return err
	}
	send, err := control.Find[*CQ](x, m.SendCQ)
	if err != nil {
		return err
	}
	recv, err := receivesOn(x, m)
	if err != nil {
		return err
	}
	if err := checkPair(m, x.Limits()); err != nil {
		return err
	}
	if m.QPType == abi.QPTypeRawPacket {
		if err := mayCreateRaw(x, pd.Context.Dev); err != nil {
			return err
		}
	}
	shared, err := sharedQueue(x, m.SRQ)
	if err != nil {
		return err
	}
	resp := ring.QPLayout(m.Cap)
	resp.Cap.MaxInline = min(resp.Cap.MaxInline, x.Limits().MaxInline) // the limit that was reported can also be requested
	bill := &account.Amounts{account.QueuePairs: 1, account.QueueBytes: qp.PrivateBytes(&resp)}
	mem, at, err := x.QueueMemory("urdma-qp", bill, ring.Heads(&resp), ring.Used(&resp))
	if err != nil {
		return err
	}
	if at.File != 0 {
		resp.Memfd = at.File
		ring.PlaceQP(&resp, at.Heads, at.Slots, uint32(len(mem.Mem)))
	}
	q := &QP{Context: pd.Context, PD: pd, ring: mem}
	q.QP = qp.New(qp.Config{Type: m.QPType, MaxMessage: maxMessage(x.Server(), m.QPType, pd.Context.Dev),
		Client: &x.Client().Client, PD: pd.Number, SendCQ: send.CQ, RecvCQ: recv, SRQ: shared,
		Async: pd.Context.Async, SigAll: m.SQSigAll != 0, Cap: resp.Cap, UserHandle: m.UserHandle,
		Ports: uint32(x.Server().Ports(pd.Context.Dev))}, mem.Mem, &resp)
	dev := &x.Server().Devices[pd.Context.Dev]
	x.Do(func() {
		if err = dev.Pairs.Take(&x.Account, pd.Context.Dev, dev.Of, dev.MaxQP); err != nil {
			return
		}
		x.Server().Making(x, q.QP)
		if q.bell, err = x.Worker().Engine.AddQP(x.Client(), q.QP); err != nil {
			dev.Pairs.Give(x.Owner.UID)
			return
		}
		q.QP.Handle = x.Add(q, bill)
	})
	if err != nil {
		mem.Close()
		x.Give(bill)
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	pd.users++
	resp.Handle, resp.QPN, resp.Doorbell = q.QP.Handle, q.QP.QPN, uint32(q.bell)
	*r = control.Respond(&resp)
	r.Bring(mem)
	return nil
}

// receivesOn returns the completion queue of a queue pair's receives; nil if it has none.
func receivesOn(x *control.Session, m *abi.CreateQPRequest) (*qp.CQ, error) {
	if m.QPType == abi.QPTypeXRCSend && m.RecvCQ == abi.NoHandle {
		return nil, nil
	}
	o, err := control.Find[*CQ](x, m.RecvCQ)
	if err != nil {
		return nil, err
	}
	return o.CQ, nil
}

func checkPair(m *abi.CreateQPRequest, most *abi.Device) error {
	c := &m.Cap
	switch {
	case m.QPType != abi.QPTypeRC && m.QPType != abi.QPTypeUC && m.QPType != abi.QPTypeUD &&
		m.QPType != abi.QPTypeRawPacket && m.QPType != abi.QPTypeXRCSend || m.XRCD != abi.NoHandle ||
		m.CreateFlags != 0 || m.SourceQPN != 0:
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
func maxMessage(s *control.Server, kind uint32, dev int) uint32 {
	switch kind {
	case abi.QPTypeUD:
		return s.Devices[dev].MaxDatagram()
	case abi.QPTypeRawPacket:
		return s.Devices[dev].MaxFrame()
	}
	return qp.MaxMessage
}

func (q *QP) modifyQP(m *abi.ModifyQPRequest, r *control.Reply) (err error) {
	x := q.Session
	m.Mask &^= qp.IgnoredAttributes(q.QP.Type)
	if m.Mask&abi.QPMaskQKey != 0 && m.Attr.QKey&qp.ControlledQKey != 0 && !x.Owner.MayUseControlledQKey(x.UnixConn) {
		return fmt.Errorf("control: the Q_Key %#x has the highest bit, which is for management datagrams, and the client has no CAP_NET_RAW: %w", m.Attr.QKey, syscall.EPERM)
	}
	if err = qp.CheckReads(m.Mask, &m.Attr, x.Limits().MaxRdAtom); err == nil {
		err = q.reachAndModify(m.Mask, &m.Attr)
	}
	if errors.Is(err, qp.ErrTransition) || errors.Is(err, qp.ErrAttribute) {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	if err != nil {
		return err
	}
	return q.queryQP(nil, r)
}

// reachTime is the longest time for which a queue pair's peer is looked for: more than a neighbour table takes.
const reachTime = 2 * time.Second

// reachAndModify modifies a queue pair if its peer can be reached; else ETIMEDOUT, as for a RoCE adapter.
func (q *QP) reachAndModify(mask uint32, a *abi.QPAttr) (err error) {
	x, found, modified := q.Session, make(chan bool, 1), false
	x.Do(func() {
		x.Worker().Numbers.Reach(q.QP, q.portOf(mask, a), mask, a, func(ok bool) { found <- ok })
		if len(found) > 0 { // known at once
			err, modified = q.modifyReached(<-found, mask, a), true
		}
	})
	if modified {
		return err
	}
	err = syscall.ETIMEDOUT
	select {
	case ok := <-found:
		x.Do(func() { err = q.modifyReached(ok, mask, a) })
	case <-time.After(reachTime): // the worker or the client has ended
	}
	return err
}

// modifyReached modifies a queue pair whose peer was looked for; on the engine's thread.
func (q *QP) modifyReached(found bool, mask uint32, a *abi.QPAttr) error {
	if !found {
		return fmt.Errorf("no neighbour has answered for the peer's address: %w", syscall.ETIMEDOUT)
	}
	return q.modify(mask, a)
}

// Port returns the port that the queue pair uses: the first of its device, unless ibv_modify_qp
// has set another; on the engine's thread.
func (q *QP) Port() int { return q.Context.Dev + max(int(q.QP.Attr.PortNum), 1) - 1 }

// portOf returns the port that the attributes name, or else the queue pair's; on the engine's thread.
func (q *QP) portOf(mask uint32, a *abi.QPAttr) int {
	if mask&abi.QPMaskPort != 0 && a.PortNum >= 1 && a.PortNum <= q.QP.Ports { // other port numbers are refused later
		return q.Context.Dev + int(a.PortNum) - 1
	}
	return q.Port()
}

// modify modifies a queue pair within the limits of that port; on the engine's thread.
func (q *QP) modify(mask uint32, a *abi.QPAttr) error {
	port := q.portOf(mask, a)
	if q.QP.Type == abi.QPTypeRawPacket {
		if err := hasRaw(q.Session.Server(), port); err != nil {
			return err
		}
	}
	if err := q.Session.Worker().Numbers.Modify(q.QP, port, mask, a); err != nil {
		return err
	}
	if mask&abi.QPMaskPort != 0 {
		q.QP.MaxMessage = maxMessage(q.Session.Server(), q.QP.Type, port)
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

func (q *QP) queryQP(_ *abi.HandleMessage, r *control.Reply) error {
	var resp abi.QueryQPResponse
	q.Session.Do(func() {
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
	*r = control.Respond(&resp)
	return nil
}

func (q *QP) destroyQP(*abi.HandleMessage, *control.Reply) error {
	x, busy := q.Session, false
	if q.flows > 0 {
		return fmt.Errorf("control: the queue pair has %d flows (ibv_destroy_flow(3)): %w", q.flows, syscall.EBUSY)
	}
	x.Do(func() { busy = x.Worker().Engine.Datagrams.Attached(q.QP) > 0 })
	if busy {
		return fmt.Errorf("control: the queue pair is attached to groups (ibv_detach_mcast(3)): %w", syscall.EBUSY)
	}
	x.SendLast(q.QP.SendLast)
	x.Do(func() {
		removeQP(x, q)
		q.Remove()
	})
	if q.target != nil {
		q.xrcd.users--
		return nil
	}
	q.PD.users--
	q.ring.Close()
	return nil
}

func (q *QP) attachMcast(m *abi.McastRequest, _ *control.Reply) error {
	return q.mcast(m, (*datagram.Stack).Attach)
}

func (q *QP) detachMcast(m *abi.McastRequest, _ *control.Reply) error {
	return q.mcast(m, (*datagram.Stack).Detach)
}

// mcast attaches a queue pair to a multicast group, or detaches it.
func (q *QP) mcast(m *abi.McastRequest, change func(*datagram.Stack, *qp.QP, int, netip.Addr) error) (err error) {
	group := m.Group.AddrPort().Addr().WithZone("").Unmap()
	if q.QP.Type != abi.QPTypeUD {
		return fmt.Errorf("control: a queue pair of type %s, and groups are for UD: %w", abi.QPTypeText(q.QP.Type),
			syscall.EINVAL)
	}
	q.Session.Do(func() {
		if q.QP.Ports > 1 && q.QP.Attr.PortNum == 0 {
			err = fmt.Errorf("control: a queue pair in RESET has none of the %d ports of %s yet, and groups are a port's: %w",
				q.QP.Ports, q.Session.Server().Devices[q.Context.Dev].Of, syscall.EINVAL)
			return
		}
		err = change(q.Session.Worker().Engine.Datagrams, q.QP, q.Port(), group)
	})
	return err
}

// createTarget makes a queue pair of type XRC_RECV. It belongs to its domain, and to the clients
// that have made or opened it.
func createTarget(x *control.Session, m *abi.CreateQPRequest, r *control.Reply) error {
	xrcd, err := control.Find[*XRCD](x, m.XRCD)
	if err != nil {
		return err
	}
	if m.PD != abi.NoHandle || m.SendCQ != abi.NoHandle || m.RecvCQ != abi.NoHandle || m.SRQ != abi.NoHandle ||
		m.CreateFlags != 0 || m.SourceQPN != 0 {
		return fmt.Errorf("control: a queue pair of type XRC_RECV has no protection domain, queues, flags or source number of its own: %w", syscall.EINVAL)
	}
	bill := &account.Amounts{account.QueuePairs: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	var resp abi.QPResponse
	q := qp.New(qp.Config{Type: m.QPType, Client: &x.Client().Client, Domain: xrcd.domain.Domain,
		Ports: uint32(x.Server().Ports(xrcd.Context.Dev))}, nil, &resp)
	o := &QP{QP: q, Context: xrcd.Context, xrcd: xrcd}
	dev := &x.Server().Devices[xrcd.Context.Dev]
	x.Do(func() {
		if err = dev.Pairs.Take(&x.Account, xrcd.Context.Dev, dev.Of, dev.MaxQP); err != nil {
			return
		}
		x.Worker().Engine.QPs.Add(q)
		refer(x, o, bill)
	})
	if err != nil {
		x.Give(bill)
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	resp.Handle, resp.QPN = o.target.Handle, q.QPN
	*r = control.Respond(&resp)
	return nil
}

// refer gives a client a handle of a target queue pair; on the engine's thread.
func refer(x *control.Session, o *QP, bill *account.Amounts) {
	o.target = &qp.Target{Async: o.Context.Async, UID: x.Owner.UID}
	o.target.Handle = x.Add(o, bill)
	o.QP.References.Add(o.target)
	o.xrcd.users++
}

// openQP gives a client a handle of an existing target queue pair.
func (xrcd *XRCD) openQP(m *abi.OpenQPRequest, r *control.Reply) error {
	x := xrcd.Session
	bill := &account.Amounts{account.QueuePairs: 1}
	if err := x.Take(bill); err != nil {
		return err
	}
	o := &QP{Context: xrcd.Context, xrcd: xrcd}
	x.Do(func() {
		if o.QP = x.Worker().Engine.QPs.Target(xrcd.domain.Domain, m.QPNum); o.QP != nil {
			refer(x, o, bill)
		}
	})
	if o.QP == nil {
		x.Give(bill)
		return fmt.Errorf("control: the XRC domain has no queue pair %06x for receiving: %w", m.QPNum, syscall.EINVAL)
	}
	*r = control.Respond(&abi.HandleMessage{Handle: o.target.Handle})
	return nil
}

// removeQP removes a client's reference to a queue pair, and the queue pair with its last
// reference; on the engine's thread. A target queue pair counts for the user with the oldest
// reference.
func removeQP(x *control.Session, o *QP) {
	pairs := &x.Server().Devices[o.Context.Dev].Pairs
	if o.target == nil {
		x.Worker().Engine.RemoveQP(x.Client(), o.QP, o.bell)
		x.Server().Gone(x, o.QP)
		pairs.Give(x.Owner.UID)
		return
	}
	oldest := o.QP.References[0].UID
	if o.QP.References.Remove(o.target) {
		pairs.Give(oldest)
		x.Worker().Engine.QPs.Remove(o.QP)
		if maker := x.Worker().SessionOf(o.QP.Client); maker != nil {
			x.Server().Gone(maker, o.QP)
		}
	} else {
		pairs.Pass(oldest, o.QP.References[0].UID)
	}
}

// Rank implements control.Object.
func (q *QP) Rank() control.Rank { return control.RankPair }

// End implements control.Object.
func (q *QP) End() *memfd.Shared {
	q.Session.Worker().Engine.Datagrams.Forget(q.QP)
	removeQP(q.Session, q)
	return q.ring
}
