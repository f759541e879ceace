package trp

import (
	"net/netip"

	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/wire"
)

// Port has the connections over one interface, by local UDP port number.
type Port struct {
	If        *netif.Interface
	datagrams *datagram.Port
	// Immediate: RDMA Writes that arrive out of order are placed on arrival.
	Immediate bool

	s      *Stack
	window int // how many segments past the last one in order a connection keeps
	conns  [1 << 16]*Conn
	past   Traffic // of connections that have left their queue pairs
	lightSenders
}

// Conn returns the connection with this local UDP port number, or nil.
func (p *Port) Conn(number uint16) *Conn { return p.conns[number] }

// MaxSegment is the largest DDP segment that fits the interface's packets, in
// bytes.
func (p *Port) MaxSegment() int { return p.If.MaxDatagram() - wire.TRPExtLen }

// MaxSegmentTo is MaxSegment limited by the known MTU of the path to a peer.
func (p *Port) MaxSegmentTo(peer netip.Addr) int { return p.If.MaxDatagramTo(peer) - wire.TRPExtLen }

// WholeLines reports whether segments are cut at cache lines. On a port of datagrams they are not: full
// length matters more there, because consecutive segments of equal length leave in one batch.
func (p *Port) WholeLines() bool { return !netif.OfDatagrams(p.If) }

// fitWindow sets how many packets connections keep: at most as many as the port queues while the worker is
// away, and as one connection can keep while a gap is open (netif.Interface.Keep).
func (p *Port) fitWindow() {
	most := min(p.s.cfg.Window, p.If.Keepable/2)
	if room := p.If.ReceiveWindow(); room > 0 {
		most = min(most, max(room, minWindow))
	}
	for p.window = 1; 2*p.window <= most; {
		p.window *= 2
	}
}

// Receive passes a datagram from the interface to its connection, to the connection manager, or to a queue
// pair of type UD or UC.
func (p *Port) Receive(d *netif.Datagram) {
	op, ok := wire.PeekOp(d.Head)
	switch {
	case ok && (op == wire.OpDatagram || op == wire.OpUC):
		p.datagram(op, d)
		return
	case d.Dst.Addr().IsMulticast():
		p.s.Stats.NoConnection++ // nothing but datagrams goes to groups
		return
	}
	c := p.conns[d.Dst.Port()]
	if c == nil || c.state == connOpening || ok && op.IsControl() {
		p.handshake(d)
		return
	}
	if c.Peer != d.Src {
		if !p.If.Decline(d) {
			p.s.Stats.StrayAddress++
		}
		return
	}
	p.s.table.Serving = c.QP
	c.packet(d)
}

// handshake passes a request, accept or reject to the connection manager.
func (p *Port) handshake(d *netif.Datagram) {
	body := append([]byte(nil), d.Data...) // a copy: the sender may still change the original
	var t wire.TRP
	at, err := t.Parse(body)
	if err != nil {
		if !p.If.Decline(d) {
			p.If.Drop(netif.Drop(err.Error()))
		}
		return
	}
	if !t.Op.IsControl() {
		if !p.If.Decline(d) {
			p.s.Stats.NoConnection++
		}
		return
	}
	p.messageArrived(d, &t, body[at:])
}
