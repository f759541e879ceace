package watch

import (
	"net/netip"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/samehost"
)

// Two ids of one worker connect without packets. Captures are shown the packets that a wire would
// carry when rdma_cm reports what they would report.

// handshake shows the packet that would bring an rdma_cm event; on the worker's thread.
func (w *worker) handshake(e *cm.Event) {
	id, m := e.ID, &cm.Message{Kind: handshake.Reply, IRD: uint16(e.Param.InitiatorDepth),
		ORD: uint16(e.Param.ResponderResources), PrivateData: e.Param.PrivateData}
	sender := w.Engine.QPs.Pair(e.Param.QPN)
	switch e.Kind {
	case cm.EventConnectRequest:
		if id, m.Kind = e.Child, handshake.Request; id.Datagrams || sender == nil || !w.owns(id.View().Peer.Addr()) {
			return
		}
	case cm.EventEstablished:
		if id.View().Side != cm.SideActive || sameHost(id) == nil {
			return
		}
	case cm.EventRejected:
		m.Kind, m.Reason = handshake.Reject, e.Reason
		sender = nil
		if peer := id.View().Peer; !w.owns(peer.Addr()) || w.CM.ListenerAt(peer) == nil {
			return
		}
	case cm.EventDisconnected:
		if c := sameHost(id); c != nil {
			w.tap.Fin(c)
		}
		return
	default:
		return
	}
	v := id.View()
	m.Dev, m.Local, m.Peer = v.Dev, v.Peer, v.Local
	w.tap.Handshake(m, sender)
}

// owns reports whether an address is this urdmad's.
func (w *worker) owns(a netip.Addr) bool {
	return a.IsLoopback() || w.Engine.Datagrams.PortAt(a) != nil
}

// sameHost returns the connection of an id if it leads to another id of the worker, else nil.
func sameHost(id *cm.ID) *samehost.Conn {
	c := connect.Common(id.View().Conn)
	if c == nil || c.QP == nil {
		return nil
	}
	s, _ := c.QP.Carrier().(*samehost.Conn)
	return s
}
