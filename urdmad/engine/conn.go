package engine

import (
	"errors"

	"urdma/dpdk/port"
	"urdma/urdmad/clock"
	"urdma/urdmad/reliable"
	"urdma/verbs/abi"
	"urdma/wire"
)

// CloseReason says how a connection ended.
type CloseReason uint8

// Reasons of Handler.Closed.
const (
	CloseLocal      CloseReason = iota // Disconnect, or the queue pair went away
	CloseRemote                        // the peer's fin
	CloseTerminated                    // a Terminate message, sent or received
	CloseDead                          // the peer was silent for the death time-out
)

type connState uint8

const (
	connOpening  connState = iota // handshake: package cm's
	connOpen                      // data flows
	connDraining                  // Disconnect: what was posted goes out, then the fin
	connFin                       // fin sent, waiting for the peer's
	connClosed                    // answers late fins until its port number is free again
)

const (
	finEvery  = Time(100e6) // between repeated fins
	finTries  = 5
	drainTime = Time(1e9)        // longest that Disconnect waits for posted work
	quietTime = Time(1e9)        // a closed connection keeps its port number
	finWait   = 5 * finEvery / 2 // a fin waits so long for a gap in front of it to close
)

// ErrPortInUse says that a connection has a UDP port number.
var ErrPortInUse = errors.New("engine: a connection has the UDP port number")

// Conn is one connection: addresses, reliability, and the queue pair it serves.
// A connection between two queue pairs of this engine has peer set and neither
// addresses on the wire nor reliability.
type Conn struct {
	Dev                 int
	LocalIP, PeerIP     wire.IPv4
	LocalPort, PeerPort uint16
	LocalISN            wire.PSN
	LocalCookie         uint32
	IRD, ORD            uint16 // in force: Reads we serve, Reads we may have open
	RNRRetry            uint8  // rnr_retry_count of our side, see notready.go
	Owner               any    // package cm's

	e        *Engine
	port     *netPort // nil for a local connection
	qp       *QP
	peer     *Conn        // the other end in this engine, or nil
	talk     conversation // local connections
	shown    shown        // local connections
	rnr      notReady
	state    connState
	passive  bool // wait for the peer's first packet before Established
	extended bool
	heard    bool

	hdr         wire.UDPHeader
	peerCookie  uint32
	payloadMax  [2]uint32 // bytes of payload in an untagged and a tagged segment
	rel         reliable.Conn
	held        []port.Packet  // out of order, slot = PSN & heldMask
	freeing     [1]port.Packet // the held packet being delivered
	heldMask    uint32
	timer       *clock.Timer
	frozen      bool     // a Terminate was sent: acknowledge no further than ackFrozen
	ackFrozen   wire.PSN //
	placing     bool     // the segment placingPSN is being delivered
	placingPSN  wire.PSN
	terminate   []byte // the Terminate message to send, header and body
	termSent    bool
	termPSN     wire.PSN
	turnServed  bool // transmit alternates between responses and requests
	tries       int
	drainUntil  Time
	finPending  bool // a fin arrived before the data in front of it
	finPSN      wire.PSN
	finUntil    Time // then it counts all the same: its sender repeats nothing
	closeReason CloseReason
	told        bool // Handler.Closed was called
	Stats       ConnStats
}

// ConnStats counts a connection's packets; reliable.Stats has the rest.
type ConnStats struct {
	TxPackets, RxPackets, Duplicates, Held, OutsideWindow uint64
}

// Local reports whether both ends are in this engine.
func (c *Conn) Local() bool { return c.port == nil }

// Peer is the other end of a connection within this engine, or nil.
func (c *Conn) Peer() *Conn {
	if c == nil {
		return nil
	}
	return c.peer
}

// QP is the queue pair served, nil until Start.
func (c *Conn) QP() *QP { return c.qp }

// Reliability returns the reliability layer's counters and estimates.
func (c *Conn) Reliability() reliable.Stats { return c.rel.Stats() }

// NewConn reserves a UDP port number on device dev for a connection that is
// being set up.
func (e *Engine) NewConn(dev int, lport uint16, peer wire.IPv4, pport uint16) (*Conn, error) {
	n := e.ports[dev]
	if n.conns[lport] != nil {
		return nil, ErrPortInUse
	}
	c := &Conn{e: e, Dev: dev, port: n, LocalIP: n.addr.IP(), LocalPort: lport, PeerIP: peer, PeerPort: pport,
		LocalISN: wire.PSN(e.rand.Uint32()), LocalCookie: e.rand.Uint32()}
	c.timer = clock.NewTimer(c.tick)
	n.conns[lport] = c
	return c, nil
}

// NewLocalConn returns one end of a connection inside this engine; Join joins
// two of them.
func (e *Engine) NewLocalConn(dev int, local, peer wire.IPv4, lport, pport uint16) *Conn {
	c := &Conn{e: e, Dev: dev, LocalIP: local, PeerIP: peer, LocalPort: lport, PeerPort: pport,
		talk: conversation{arrived: Never}, extended: true}
	c.setSegmentSizes(e.ports[dev].maxSegment()) // of what taps are shown
	c.timer = clock.NewTimer(c.tick)
	return c
}

// Join makes two local ends one connection.
func Join(a, b *Conn) { a.peer, b.peer = b, a }

// Release gives up a connection that was never started.
func (c *Conn) Release() {
	if c.state == connOpening {
		c.state = connClosed
		c.free()
	}
}

func (c *Conn) free() {
	c.e.SetTimer(c.timer, Never)
	c.dropHeld()
	if c.port != nil && c.port.conns[c.LocalPort] == c {
		c.port.conns[c.LocalPort] = nil
	}
}

// StartParams is what the handshake agreed on.
type StartParams struct {
	QP      *QP
	MAC     wire.MAC // next hop
	PeerISN wire.PSN
	Peer    wire.TRPExtension // valid if HasExt
	HasExt  bool
	// Passive: Established is reported when the peer's first packet arrives.
	Passive bool
}

// Start opens the connection for data and moves the queue pair to RTS. An
// active side acknowledges the accept with its first packet.
func (c *Conn) Start(p StartParams) {
	c.qp = p.QP
	c.state, c.passive = connOpen, p.Passive
	if c.port != nil {
		c.startWire(p)
	}
	qp := p.QP
	qp.conn = c
	qp.state = abi.QPSRTS
	qp.sendMSN, qp.readMSN, qp.recvMSN, qp.reqMSN = 1, 1, 1, 1
	qp.irq = make([]readResponse, powerOfTwo(uint32(max(c.IRD, 1))))
	qp.irqHead, qp.irqNext, qp.irqTail = 0, 0, 0
	c.e.post(qp)
	c.e.runq.add(qp)
}

func (c *Conn) startWire(p StartParams) {
	c.extended, c.peerCookie = p.HasExt, p.Peer.Cookie
	c.hdr.Init(wire.MAC(c.port.info.MAC), p.MAC, c.LocalIP, c.PeerIP, c.LocalPort, c.PeerPort)
	c.setSegmentSize(p)
	window := c.e.cfg.Window
	c.rel.Init(reliable.Config{
		LocalISN: c.LocalISN, PeerISN: p.PeerISN, Window: window, RecvWindow: window,
		PeerWindow: int(p.Peer.RecvWindow), Extended: p.HasExt,
		DeathTimeout: c.e.cfg.DeathTimeout, AckDelay: c.e.cfg.AckDelay, KeepAlive: c.e.cfg.DeathTimeout / 2,
	})
	c.held = make([]port.Packet, window)
	c.heldMask = uint32(window - 1)
	if !p.Passive {
		c.rel.OnAckRequested(c.e.now)
	}
	c.e.SetTimer(c.timer, c.e.now)
}

// MaxSegment is the largest DDP segment that fits a port's packets, in bytes.
func (n *netPort) maxSegment() int {
	return n.info.MTU - wire.IPv4Len - wire.UDPLen - wire.TRPExtLen
}

// setSegmentSize fits segments into our packets and the peer's buffers, and
// rounds payloads down to whole cache lines, so that every segment of a message
// is copied alike.
func (c *Conn) setSegmentSize(p StartParams) {
	size := c.port.maxSegment()
	if p.HasExt {
		size = min(size, int(p.Peer.MaxSegment))
	}
	c.setSegmentSizes(size)
}

func (c *Conn) setSegmentSizes(size int) {
	for i, head := range [2]int{wire.UntaggedLen, wire.TaggedLen} {
		room := uint32(size - head)
		if room > 256 {
			room &^= 63
		}
		c.payloadMax[i] = room
	}
}

// Disconnect ends the connection in good order: work already posted goes out
// (for a second at most), then a fin.
func (c *Conn) Disconnect() {
	switch c.state {
	case connOpening:
		c.Release()
	case connOpen:
		c.stopHolding()
		c.closeReason = CloseLocal
		c.state = connDraining
		if c.drained() || c.qp.state != abi.QPSRTS {
			c.finish()
			return
		}
		c.drainUntil = c.e.now + min(drainTime, c.e.cfg.DeathTimeout)
		c.tickDraining()
	}
}

// abandon ends the connection now: its queue pair is going away.
func (c *Conn) abandon() {
	if c.state == connOpen || c.state == connDraining {
		c.closeReason = CloseLocal
		c.finish()
	}
	if c.qp != nil {
		c.remember()
		c.qp.conn = nil
		c.qp = nil
	}
}

// finish flushes the queue pair, sends the fin and reports the end.
func (c *Conn) finish() {
	if c.state == connFin || c.state == connClosed {
		return
	}
	c.stopHolding()
	c.state = connFin
	c.tries = 0
	if c.qp != nil {
		c.e.errorQP(c.qp)
	}
	if c.port == nil {
		c.showFin()
	}
	if c.peer != nil {
		p := c.peer
		c.peer, p.peer = nil, nil
		p.remoteEnd()
	}
	c.tell()
	if c.port == nil || c.closeReason == CloseDead {
		c.close()
		return
	}
	c.sendFin()
	c.e.SetTimer(c.timer, c.e.now+finEvery)
}

// remoteEnd: the other end of a local connection has ended.
func (c *Conn) remoteEnd() {
	if c.state == connOpen || c.state == connDraining {
		c.closeReason = CloseRemote
		c.finish()
	}
}

func (c *Conn) tell() {
	if !c.told {
		c.told = true
		c.e.handler.Closed(c, c.closeReason)
	}
}

// close waits quietly for late packets before the port number is free again.
func (c *Conn) close() {
	c.state = connClosed
	c.dropHeld()
	if c.port == nil {
		c.free()
		return
	}
	c.e.SetTimer(c.timer, c.e.now+quietTime)
}

// tick is the connection's timer.
func (c *Conn) tick() {
	switch c.state {
	case connOpen:
		c.tickOpen()
	case connDraining:
		c.tickDraining()
	case connFin:
		if c.tries++; c.tries >= finTries {
			c.close()
			return
		}
		c.sendFin()
		c.e.SetTimer(c.timer, c.e.now+finEvery)
	case connClosed:
		c.free()
	}
}

func (c *Conn) tickDraining() {
	if c.port != nil && c.tickPeer() {
		return
	}
	if c.e.now >= c.drainUntil || c.drained() {
		c.finish()
		return
	}
	c.e.runq.add(c.qp)
	c.e.SetTimer(c.timer, c.drainUntil)
}

// drained reports whether all that was posted is done, the peer's Reads that we
// serve included.
func (c *Conn) drained() bool {
	return c.qp == nil || c.qp.Outstanding() == 0 && c.qp.irqHead == c.qp.irqTail
}

func (c *Conn) tickOpen() {
	if c.port == nil {
		c.tickHolding()
		return
	}
	if c.tickPeer() {
		return
	}
	c.e.runq.add(c.qp) // retransmissions, acknowledgements and probes go from there, and the timer is set again
}

// tickPeer looks at what the peer has not done in time; true means that the
// connection has ended.
func (c *Conn) tickPeer() bool {
	if c.finPending && c.e.now >= c.finUntil {
		c.endByFin()
		return true
	}
	if c.rel.Tick(c.e.now) != nil {
		c.die()
		return true
	}
	return false
}

// schedule sets the timer to the reliability layer's deadline.
func (c *Conn) schedule() {
	if c.state != connOpen && c.state != connDraining {
		return
	}
	c.e.hasten(c.timer, c.rel.Deadline())
	if c.finPending {
		c.e.hasten(c.timer, c.finUntil)
	}
}

// die ends a connection whose peer is silent.
func (c *Conn) die() {
	c.e.log.Info("peer is silent, connection ends", "peer", c.PeerIP.String(), "port", c.PeerPort, "qpn", c.qp.QPN)
	c.closeReason = CloseDead
	c.e.failOldest(c.qp, abi.StatusRetryExcErr, 0)
	c.finish()
}

func (c *Conn) dropHeld() {
	c.dropStashed()
	for i := range c.held {
		if c.held[i].Data != nil {
			c.port.queue.Free(c.held[i : i+1])
			c.held[i] = port.Packet{}
		}
	}
}

func powerOfTwo(n uint32) uint32 {
	p := uint32(1)
	for p < n {
		p <<= 1
	}
	return p
}
