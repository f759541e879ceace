package mpa

import (
	"errors"
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/places"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connOpening     connState = iota // active: no request sent yet
	connConnecting                   // active: TCP handshake in progress
	connRequesting                   // active: request queued or sent, waiting for the reply
	connReplied                      // active: reply received, waiting for Start
	connAwaiting                     // passive: waiting for the request
	connRequested                    // passive: waiting for the program's answer
	connStarting                     // passive: reply sent, waiting for the extension of a urdmad
	connOpen                         // data flows
	connDraining                     // Disconnect was called: posted work is sent, then the end of the stream
	connTerminating                  // a Terminate is being sent, then the end of the stream
	connClosing                      // our end of the stream is sent, waiting for the peer's
	connClosed
)

var stateNames = [...]string{connOpening: "opening", connConnecting: "connecting", connRequesting: "requesting",
	connReplied: "replied", connAwaiting: "awaiting request", connRequested: "requested", connStarting: "starting",
	connOpen:     "open",
	connDraining: "draining", connTerminating: "terminating", connClosing: "closing", connClosed: "closed"}

var (
	errMarkers  = errors.New("mpa: the peer wants markers, which are not supported")
	errRevision = errors.New("mpa: revision of the request is neither 1 nor 2")
)

// Conn is one connection: a qp.Carrier over a TCP socket.
type Conn struct {
	qp.Connection
	Paid func() // called once, when the socket is closed; nil: the connection is not counted

	s       *Stack
	fd      int // -1: no socket
	state   connState
	passive bool
	timer   *clock.Timer
	events  uint32        // epoll events that the kernel is asked for
	polled  bool          // the socket is registered with epoll
	number  int32         // distinguishes its epoll events from those of an earlier socket with the same descriptor
	silent  *places.Place // passive: its place among connections without a request; nil, or left, afterwards

	frame   []byte // request, reply or extension, as far as it has arrived
	offer   Offer
	older   bool     // active: the request has revision 1, because the peer did not accept 2
	asked   wire.MPA // passive: the request
	pending *qp.QP   // passive: the queue pair from Start
	terms   Terms

	headStart clock.Time // no FPDU is sent before this time, unless the peer's first FPDU has arrived
	stream    rdmap.Stream
	in        inbound
	out       outbound
	rnr       qp.NotReady
	placing   bool       // the program's memory is being written or read
	placed    uint64     // counts segments and pieces of segments; the number identifies a message for rnr
	endAt     clock.Time // when the end of the peer's stream was seen after a message that waits; 0: not seen
	again     *clock.Timer
	silence   silence
	delayed   delayed
	reason    qp.CloseReason
	reported  bool       // Closed was called
	closeBy   clock.Time // when the socket is closed, even if the peer has not received everything
	acked     uint64     // bytes acknowledged by the peer at the last check while the connection closes
	resent    uint64     // Traffic.Resent at the end of the connection
}

func (s *Stack) newConn(dev int, local, peer netip.AddrPort) *Conn {
	s.number++
	c := &Conn{s: s, fd: -1, number: s.number}
	c.Dev, c.Local, c.Peer = dev, local, peer
	c.silence.limit, c.delayed.answers.Delay = s.cfg.DeathTimeout, s.cfg.AnswerDelay
	c.timer, c.again = clock.NewTimer(c.tick), clock.NewTimer(c.tryAgain)
	c.silence.timer, c.delayed.timer = clock.NewTimer(c.checkSilence), clock.NewTimer(c.unanswered)
	return c
}

// Open returns the active side of a connection from a local port number. Nothing is sent before Send.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn { return s.newConn(dev, local, peer) }

// Send sends a request, a reply or a reject for queue pair q. The handler's Replied or Refused follows a request,
// which is not repeated. Start has set the queue pair before a reply.
func (c *Conn) Send(m *handshake.Message, q *qp.QP) {
	switch {
	case m.Kind == handshake.Request && c.state == connOpening:
		c.offer = c.offerOf(m, q)
		if err := c.request(); err != nil {
			c.s.clock.Soon(func() { c.s.handler.Refused(c, errnoOf(err)) })
		}
	case m.Kind == handshake.Request && c.pendingThere():
		c.s.handler.Replied(&c.Connection, &handshake.Message{Kind: handshake.Pending})
	case m.Kind == handshake.Reply && c.state == connRequested && c.pending != nil:
		c.accept(c.offerOf(m, q))
	case m.Kind == handshake.Reject && c.state == connRequested:
		c.reject(m.PrivateData)
	}
}

// request connects the socket; the request follows.
func (c *Conn) request() error {
	fd, err := connect(c.Local, c.Peer, c.s.devices[c.Dev].Scope, c.s.cfg.DeathTimeout)
	if err != nil {
		return err
	}
	c.fd, c.state = fd, connConnecting
	c.watch()
	c.s.clock.Set(c.timer, c.now()+c.s.cfg.StartTimeout)
	return nil
}

func errnoOf(err error) unix.Errno {
	if errno, ok := err.(unix.Errno); ok {
		return errno
	}
	return unix.EIO
}

// pendingThere reports whether the peer's host has received the request and its program is to answer.
func (c *Conn) pendingThere() bool {
	if c.state != connRequesting || !c.out.empty() {
		return false
	}
	t, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && t.Unacked == 0
}

// accept answers the request with a reply.
func (c *Conn) accept(o Offer) {
	var reply wire.MPA
	reply, c.terms = o.reply(&c.asked)
	if !c.putFrame(&reply) {
		return
	}
	if reply.Extension {
		c.state = connStarting
		c.s.clock.Set(c.timer, c.now()+c.s.cfg.StartTimeout)
		c.watch()
		return
	}
	c.s.clock.Soon(c.established)
}

// established opens the passive side for data.
func (c *Conn) established() {
	if c.state == connRequested || c.state == connStarting {
		c.begin()
	}
	if c.live() {
		c.s.handler.Established(&c.Connection)
	}
}

// reject refuses the request, with private data.
func (c *Conn) reject(private []byte) {
	reply := refuse(&c.asked, private)
	if c.putFrame(&reply) {
		c.shut()
	} else {
		c.close()
	}
}

func (c *Conn) putFrame(m *wire.MPA) bool {
	b, err := m.Append(nil)
	if err != nil {
		c.s.log.Error("mpa: not sent", "error", err)
		c.close()
		return false
	}
	c.out.put(b)
	_, ok := c.flush()
	return ok || c.out.full
}

// Start has the parameters agreed on in the handshake.
type Start struct {
	QP       *qp.QP
	Passive  bool
	Patience clock.Time // how long a silent peer is tolerated; 0: as configured
}

// Start opens the connection for data and moves the queue pair to RTS. On the passive side the queue pair
// stays as it is until the reply is sent, and until the extension of a urdmad has arrived.
func (c *Conn) Start(p Start) {
	c.pending, c.passive = p.QP, p.Passive
	if p.Patience > 0 && c.fd >= 0 {
		c.silence.limit = p.Patience
		setOptions(c.fd, p.Patience)
	}
	if !p.Passive {
		c.begin()
	}
}

func (c *Conn) begin() {
	q := c.pending
	if c.pending = nil; !q.Connectable() {
		c.fail(qp.CloseLocal)
		return
	}
	c.s.clock.Set(c.timer, clock.Never)
	c.QP, c.state = q, connOpen
	if !c.terms.Extended && (c.passive || c.terms.copied) {
		c.giveHeadStart()
	}
	if c.terms.Extended {
		c.PeerAccepts = rdmap.AcceptedBy(c.terms.Extension.Capabilities)
		if !c.passive {
			c.out.put(appendExtension(nil, &c.offer.Extension))
		}
	}
	ird := c.IRD
	if c.terms.reads {
		ird = max(ird, 1)
	}
	c.stream.Init(q, ird, c.segment(), false, c.s.streams)
	q.Attach(c)
	c.watch()
}

// maxSegment is the greatest length of a DDP segment, whose FPDU has a 16-bit length field. Payloads are
// multiples of 4 bytes.
const maxSegment = 65532

// segment returns the greatest length of a DDP segment to the peer: its FPDU fits a TCP segment, as in RFC
// 5044 section 5, or is the longest for a peer that accepts longer ones.
func (c *Conn) segment() int {
	if c.terms.Long {
		return maxSegment
	}
	mss := 1460
	if info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		mss = int(info.Snd_mss)
	}
	return max(wire.MinMaxSegment, min(maxSegment, (mss-wire.FPDUCRCLen)&^3-wire.FPDUHeaderLen))
}

// Serving implements qp.Carrier.
func (c *Conn) Serving() int { return c.stream.Serving() }

func (c *Conn) now() clock.Time { return c.s.clock.Now }

// live reports whether data flows.
func (c *Conn) live() bool { return c.state == connOpen || c.state == connDraining }

// receives reports whether the socket is read.
func (c *Conn) receives() bool { return c.live() && !c.rnr.Waiting() }

// watch asks the kernel for the events that the connection waits for.
func (c *Conn) watch() {
	var events uint32
	switch c.state {
	case connConnecting:
		events = unix.EPOLLOUT
	case connRequesting, connAwaiting, connStarting, connClosing:
		events = unix.EPOLLIN
	case connOpen, connDraining:
		switch {
		case !c.rnr.Waiting():
			events = unix.EPOLLIN
		case c.endAt == 0:
			events = unix.EPOLLRDHUP
		}
	case connRequested:
		events = unix.EPOLLRDHUP
	}
	if c.out.full {
		events |= unix.EPOLLOUT
	}
	c.s.ask(c, events)
}

// tick is the connection's timer function: a step has taken too long.
func (c *Conn) tick() {
	switch c.state {
	case connConnecting:
		c.s.Stats.StartTimeouts++
		c.close()
		c.s.handler.Refused(c, unix.ETIMEDOUT)
	case connAwaiting:
		c.s.Stats.StartTimeouts++
		c.close()
	case connStarting:
		c.s.Stats.StartTimeouts++
		c.fail(qp.CloseDead)
	case connOpen:
		c.endHeadStart()
	case connTerminating, connClosing:
		c.closeTimedOut()
	}
}
