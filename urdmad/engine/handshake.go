package engine

import (
	"urdma/urdmad/host"
	"urdma/wire"
)

// This file is what package cm needs of ports and connections while it sets
// connections up.

// Resolve calls w with the Ethernet address of hop on device dev's link.
func (e *Engine) Resolve(dev int, hop wire.IPv4, w host.Waiter) {
	n := e.ports[dev]
	n.sendARP(n.arp.Resolve(int64(e.now), hop, w))
}

// Announce tells the links that our ports are up (gratuitous ARP).
func (e *Engine) Announce() {
	for _, n := range e.ports {
		if n.info.Wire {
			n.sendARP(n.arp.Announce())
		}
	}
}

// NextHop is where device dev sends packets for dst; false if it has no route.
func (e *Engine) NextHop(dev int, dst wire.IPv4) (wire.IPv4, bool) {
	if !e.ports[dev].info.Wire {
		return wire.IPv4{}, false
	}
	return e.ports[dev].nextHop(dst)
}

// ConnAt is the connection that has a UDP port number on device dev, or nil.
func (e *Engine) ConnAt(dev int, port uint16) *Conn { return e.ports[dev].conns[port] }

// Extension is what we offer a peer for a connection.
func (e *Engine) Extension(c *Conn, qp *QP) wire.TRPExtension {
	return wire.TRPExtension{Cookie: c.LocalCookie, QPN: wire.QPN(qp.QPN),
		MaxSegment: uint16(c.port.maxSegment()), RecvWindow: uint16(e.cfg.Window)}
}

// AcknowledgeNow sends an acknowledgement in this turn.
func (c *Conn) AcknowledgeNow() {
	if c.port != nil && c.state == connOpen {
		c.rel.OnAckRequested(c.e.now)
		c.e.runq.add(c.qp)
	}
}

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() {
	if c.state == connOpen {
		c.closeReason = CloseDead
		c.finish()
	}
}
