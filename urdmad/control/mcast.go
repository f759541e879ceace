package control

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/datagram"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
)

func attachMcast(x *Session, m *abi.McastRequest, _ *reply) error {
	return x.mcast(m, (*datagram.Stack).Attach)
}

func detachMcast(x *Session, m *abi.McastRequest, _ *reply) error {
	return x.mcast(m, (*datagram.Stack).Detach)
}

// mcast changes what groups a queue pair is attached to.
func (x *Session) mcast(m *abi.McastRequest, change func(*datagram.Stack, *qp.QP, int, netip.Addr) error) error {
	q, err := object[*qpObject](x, m.QP)
	if err != nil {
		return err
	}
	group := m.Group.AddrPort().Addr().WithZone("").Unmap()
	if q.qp.Type != abi.QPTypeUD {
		return syscall.EINVAL
	}
	x.do(func() { err = change(x.s.Engine.Datagrams, q.qp, q.ctx.dev, group) })
	return err
}
