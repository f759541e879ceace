package trp

import (
	"errors"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

type connState uint8

const (
	connOpening  connState = iota // handshake, run by the connection manager
	connOpen                      // data flows
	connDraining                  // Disconnect was called: posted work is sent, then the fin
	connFin                       // fin sent, waiting for the peer's
	connClosed                    // late fins are answered until the port number is free again
)

var stateNames = [...]string{connOpening: "opening", connOpen: "open", connDraining: "draining", connFin: "closing",
	connClosed: "closed"}

// ErrPortInUse reports that another connection has the UDP port number.
var ErrPortInUse = errors.New("trp: a connection has the UDP port number")

// Conn is one connection: a qp.Carrier over TRP.
type Conn struct {
	qp.Connection
	LocalISN    wire.PSN
	LocalCookie uint32

	s     *Stack
	port  *Port
	state connState
	timer *clock.Timer
	remote
	rel    reliable.Conn
	stream rdmap.Stream
	budget int // packets that one turn may send
	single singleSegment

	passive      bool // wait for the peer's first packet before Established
	heard        bool // the first packet has arrived
	marks        marks
	held         heldRing
	rnr          notReady
	more         bool // Transmit delivers further kept packets
	peerNotReady peerNotReady
	end          ending
	term         termination

	unwritten qp.Unwritten // writes to memory in progress, by PSN; acknowledgements end before the first
}

// remote has the headers of packets to the peer, and the path to it.
type remote struct {
	Stats ConnStats

	path       netif.Path
	peerCookie uint32
}

// ConnStats counts a connection's packets; the other counters are in reliable.Stats.
type ConnStats struct {
	TxPackets uint64 `counter:"tx_packets"`
	RxPackets uint64 `counter:"rx_packets"`

	Duplicates, Held, OutsideWindow uint64
}

// marks count the segments sent and acknowledged since the connection began. The stream needs counts that start
// at 0 and never wrap, which PSNs do not offer.
type marks struct {
	sent     uint64
	acked    uint64
	ackedPSN wire.PSN // the PSN that corresponds to acked
}

// Open reserves a local UDP port number for a connection that is being set up.
func (s *Stack) Open(dev int, lport uint16, peer netip.AddrPort) (*Conn, error) {
	p := s.ports[dev]
	if p.conns[lport] != nil || s.cfg.Numbers != nil && !s.cfg.Numbers.Take(lport) {
		return nil, ErrPortInUse
	}
	c := &Conn{s: s, port: p, LocalISN: wire.PSN(s.rand.Uint32()), LocalCookie: s.rand.Uint32()}
	c.Dev, c.Local, c.Peer = dev, netip.AddrPortFrom(p.If.IP(), lport), peer
	c.timer = clock.NewTimer(c.tick)
	p.conns[lport] = c
	return c, nil
}

// Release frees a connection that was never started.
func (c *Conn) Release() {
	if c.state == connOpening {
		c.state = connClosed
		c.port.free(c)
	}
}

// free releases everything that the connection uses on its port.
func (p *Port) free(c *Conn) {
	c.s.clock.Set(c.timer, clock.Never)
	c.dropKept()
	c.path.Leave()
	if number := c.Local.Port(); p.conns[number] == c {
		p.conns[number] = nil
		if n := p.s.cfg.Numbers; n != nil {
			n.Give(number)
		}
	}
}

// Start has the parameters agreed on in the handshake.
type Start struct {
	QP      *qp.QP
	Link    any // the netif.Link to the peer or the next hop
	PeerISN uint32
	Offer   any // of the peer's message, see Decode
	// Passive: Established is reported when the peer's first packet arrives.
	Passive bool
	// Patience is how long a silent peer is tolerated; 0: the stack's death timeout.
	Patience clock.Time
}

// Start opens the connection for data and moves the queue pair to RTS. The first packet of an active side
// acknowledges the accept.
func (c *Conn) Start(p Start) {
	c.QP = p.QP
	c.state, c.passive = connOpen, p.Passive
	peer, link := p.Offer.(*wire.TRPExtension), p.Link.(netif.Link)
	c.peerCookie = peer.Cookie
	c.path = c.port.If.Path(link, c.Local, c.Peer)
	c.path.Follow()
	size := min(c.port.MaxSegmentTo(c.Peer.Addr()), int(peer.MaxSegment))
	c.PeerAccepts = rdmap.AcceptedBy(peer.Capabilities)
	c.stream.Init(p.QP, c.IRD, size, c.port.WholeLines(), c.s.streams)
	c.budget = budgetFor(&c.path, c.stream.TaggedPayload()+wire.TaggedLen)
	r := c.s.reliability(c, &p, peer)
	c.rel.Init(r)
	c.marks.ackedPSN = c.LocalISN
	c.held.init(r.RecvWindow, &c.s.pages)
	c.unwritten.Init(p.QP)
	if !p.Passive {
		c.rel.OnAckRequested(c.now())
	}
	c.s.clock.Set(c.timer, c.now())
	p.QP.Attach(c)
}

// socketDelay is the queueing delay that a connection over UDP sockets tolerates. Its round trips include
// the kernel's scheduling of both ends: with the target for memory interfaces and NICs, a shared core would
// look like a long queue, and most of the window would stay unused.
const socketDelay = 500 * clock.Microsecond

// reliability returns the configuration of a connection's reliability layer. A connection by number ends
// after the timeouts in its queue pair's attributes, and sends keep-alive probes only while it awaits an
// answer.
func (s *Stack) reliability(c *Conn, p *Start, peer *wire.TRPExtension) reliable.Config {
	r := reliable.Config{
		Rings: &s.rings, LocalISN: c.LocalISN, PeerISN: wire.PSN(p.PeerISN), Window: s.cfg.Window,
		RecvWindow:   c.port.window,
		PeerWindow:   int(peer.RecvWindow),
		DeathTimeout: s.cfg.DeathTimeout, AckDelay: s.cfg.AckDelay, KeepAlive: s.cfg.DeathTimeout / 2,
	}
	if netif.OfDatagrams(c.port.If) {
		r.TargetDelay, r.Batches = socketDelay, true
	}
	if p.Patience != 0 {
		r.DeathTimeout, r.KeepAlive = p.Patience, p.Patience/2
	}
	if c.ByNumber {
		r.DeathTimeout, r.KeepAlive = qp.RetryTime(&p.QP.Attr), 0
	}
	return r
}

// SetPatience applies changed attributes of the queue pair to its connection.
func (s *Stack) SetPatience(c *Conn) {
	if c.live() && c.ByNumber {
		c.rel.SetDeathTimeout(qp.RetryTime(&c.QP.Attr))
	}
}

// acknowledgeNow sends an acknowledgement in this turn.
func (c *Conn) acknowledgeNow() {
	c.rel.OnAckRequested(c.now())
	c.ready()
}

// Serving implements qp.Carrier.
func (c *Conn) Serving() int { return c.stream.Serving() }

// Stalled returns how long the peer has acknowledged nothing although segments were resent to it; for
// qp.QP.SendLast.
func (c *Conn) Stalled() clock.Time { return c.rel.Stalled(c.now()) }

func (c *Conn) now() clock.Time { return c.s.clock.Now }

// ready puts the queue pair on the list of those that transmit, which also sends acknowledgements, probes
// and retransmissions.
func (c *Conn) ready() { c.s.table.Ready(c.QP) }

// live reports whether data flows.
func (c *Conn) live() bool { return c.state == connOpen || c.state == connDraining }

// tick is the connection's timer.
func (c *Conn) tick() {
	switch c.state {
	case connOpen:
		if !c.tickPeer() {
			c.ready() // Transmit sets the timer again
		}
	case connDraining:
		c.tickDraining()
	case connFin:
		c.tickFin()
	case connClosed:
		c.port.free(c)
	}
}

// tickPeer handles expired timers for the peer; true means that the connection has ended.
func (c *Conn) tickPeer() bool {
	if c.end.finPending && c.now() >= c.end.finUntil {
		c.endByFin()
		return true
	}
	if c.rel.Tick(c.now()) != nil {
		c.endSilent()
		return true
	}
	c.askIfPeerNotReady()
	if c.rel.TimeoutsInRow() > 0 {
		c.path.Confirm() // the next hop's link-layer address may have changed
	}
	return false
}

// schedule sets the timer to the reliability layer's deadline.
func (c *Conn) schedule() {
	if !c.live() {
		return
	}
	if c.ByNumber {
		c.rel.Await(c.QP.SQ.ReadsOutstanding())
	}
	c.s.clock.Hasten(c.timer, min(c.rel.Deadline(), c.peerNotReady.askTime()))
	if c.end.finPending {
		c.s.clock.Hasten(c.timer, c.end.finUntil)
	}
	if c.term.until != 0 {
		c.s.clock.Hasten(c.timer, c.term.until)
	}
}
