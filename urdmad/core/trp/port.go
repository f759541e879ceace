package trp

import (
	"net/netip"

	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// Port is the connections over one interface, by our UDP port number.
type Port struct {
	If        *netif.Interface
	datagrams *datagram.Port
	// Immediate: RDMA Writes that come out of order are placed as they come.
	Immediate bool

	s      *Stack
	window int
	wide   int // window to a peer that reads credits of 20 bits
	conns  [1 << 16]*Conn
	past   Traffic // of connections that left their queue pairs
	lightSenders
}

// Conn is the connection that has a UDP port number, or nil.
func (p *Port) Conn(number uint16) *Conn { return p.conns[number] }

// MaxSegment is the largest DDP segment that fits the interface's packets, in
// bytes.
func (p *Port) MaxSegment() int { return p.If.MaxDatagram() - wire.TRPExtLen }

// MaxSegmentTo is MaxSegment, as far as the path to a peer is known to take it.
func (p *Port) MaxSegmentTo(peer netip.Addr) int { return p.If.MaxDatagramTo(peer) - wire.TRPExtLen }

// WholeLines reports whether segments are cut at cache lines. On a port of datagrams
// their full length counts for more: those of one length, which lie one behind the
// other, leave as one piece.
func (p *Port) WholeLines() bool { return !netif.OfDatagrams(p.If) }

// Window is how many segments past what arrived in order a connection holds: what
// we are configured for, as far as the port holds so many while we are away. Where
// both sides have credits of 20 bits, it may be more (windows).
func (p *Port) Window() int { return p.window }

// fitWindows sets what connections hold: at most what waits in the port while we are
// away, and of what a wide window has, no more than one connection can keep while a
// gap is open (netif.Interface.Keep).
func (p *Port) fitWindows() {
	room := p.If.ReceiveWindow()
	if room == 0 {
		room = reliable.MaxWideWindow
	}
	for p.window = p.s.cfg.Window; p.window > max(room, minWindow); {
		p.window /= 2
	}
	most := min(p.s.cfg.wideWindow(), room, p.If.Retainable()/2)
	for p.wide = p.window; 2*p.wide <= most; {
		p.wide *= 2
	}
}

// windows are how many segments a connection has under way at most, and how many it
// holds; wide: to a peer that reads credits of 20 bits.
func (p *Port) windows(wide bool) (sends, holds int) {
	if wide {
		return p.s.cfg.wideWindow(), p.wide
	}
	return p.s.cfg.Window, p.window
}

// Receive hands a datagram of the interface's to its connection, to the
// connection manager, or to queue pairs of types UD and UC.
func (p *Port) Receive(d *netif.Datagram) {
	op, ok := wire.PeekOp(d.Head)
	switch {
	case ok && (op == wire.OpDatagram || op == wire.OpUC):
		if why := p.datagram(op, d); why != "" {
			p.If.Note("dropped: " + why)
		}
		return
	case d.Dst.Addr().IsMulticast():
		p.If.Note("dropped: nothing but datagrams goes to groups")
		return
	}
	c := p.conns[d.Dst.Port()]
	if c == nil || c.state == connOpening || ok && op.IsControl() {
		p.handshake(d)
		return
	}
	if c.Peer != d.Src {
		if !p.If.Decline(d) {
			p.s.stray(p.If, "the connection has another peer")
		}
		return
	}
	c.packet(d)
}

// handshake hands a request, accept or reject to the manager of connections.
func (p *Port) handshake(d *netif.Datagram) {
	body := append([]byte(nil), d.Data...) // the manager may keep parts of it
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
			p.If.Note("dropped: no connection has this port number")
		}
		return
	}
	p.s.handler.Handshake(p.If.Dev, d, &t, body[at:])
}
