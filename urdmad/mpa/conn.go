package mpa

import (
	"errors"
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
	"urdma/urdmad/rdmap"
	"urdma/verbs/abi"
	"urdma/wire"

	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connOpening     connState = iota // active: not asked for yet
	connConnecting                   // active: TCP's handshake
	connRequesting                   // active: the request is on its way, the reply to come
	connReplied                      // active: the reply has come, Start is to come
	connAwaiting                     // passive: the request is to come
	connRequested                    // passive: the program is to answer
	connStarting                     // passive: replied, the extension of a urdmad is to come
	connOpen                         // data flows
	connDraining                     // Disconnect: what was posted goes out, then the end of the stream
	connTerminating                  // a Terminate goes out, then the end of the stream
	connClosing                      // our end of the stream is out, the peer's to come
	connClosed
)

var stateNames = [...]string{connOpening: "opening", connConnecting: "connecting", connRequesting: "requesting",
	connReplied: "replied", connAwaiting: "awaiting request", connRequested: "requested", connStarting: "starting", connOpen: "open",
	connDraining: "draining", connTerminating: "terminating", connClosing: "closing", connClosed: "closed"}

const (
	drainTime  = clock.Second // longest that Disconnect waits for posted work
	drainCheck = clock.Millisecond
	closeTime  = 2 * clock.Second // longest that a peer's end of the stream is waited for
)

var (
	errMarkers  = errors.New("mpa: the peer wants markers, which are not supported")
	errRevision = errors.New("mpa: revision of the request is neither 1 nor 2")
)

// Conn is one connection: a qp.Carrier over a TCP socket.
type Conn struct {
	qp.Connection

	s       *Stack
	fd      int // -1: none
	state   connState
	passive bool
	timer   *clock.Timer
	events  uint32     // that the kernel is asked for
	polled  bool       // the kernel is asked
	number  int32      // tells its events from those of another that had the same descriptor
	silent  netip.Addr // passive: counted among those of the address that have asked for nothing yet; else not valid

	frame   []byte // request, reply or extension, as far as it has come
	offer   Offer
	asked   wire.MPA // passive: the request
	pending *qp.QP   // passive: what Start named
	terms   Terms

	quiet   clock.Time // nothing is sent before, unless the peer's first FPDU has come
	stream  rdmap.Stream
	in      inbound
	out     outbound
	rnr     qp.NotReady
	placing bool   // the program's memory is being written, or read
	placed  uint64 // segments, and pieces of them: numbers for rnr
	again   *clock.Timer
	silence silence
	reason  qp.CloseReason
	told    bool // Closed was called
	shown   shown
	resent  uint64 // Traffic.Resent at the end
}

func (s *Stack) newConn(dev int, local, peer netip.AddrPort) *Conn {
	s.number++
	c := &Conn{s: s, fd: -1, number: s.number}
	c.Dev, c.Local, c.Peer = dev, local, peer
	c.silence.limit = s.cfg.DeathTimeout
	c.timer, c.again, c.silence.timer = clock.NewTimer(c.tick), clock.NewTimer(c.tryAgain), clock.NewTimer(c.listen)
	return c
}

// Open returns the active side of a connection from a local port number, which is
// nothing but an intention until Request.
func (s *Stack) Open(dev int, local, peer netip.AddrPort) *Conn { return s.newConn(dev, local, peer) }

// Terms are those of the connection.
func (c *Conn) Terms() Terms { return c.terms }

// Request connects the socket and asks for the connection; Replied or Refused of the
// handler follows. Further calls do nothing.
func (c *Conn) Request(o Offer) error {
	if c.state != connOpening {
		return nil
	}
	c.offer = o
	fd, err := connect(c.Local, c.Peer, c.s.devices[c.Dev].scope, c.s.cfg.DeathTimeout)
	if err != nil {
		return err
	}
	c.fd, c.state = fd, connConnecting
	c.watch()
	c.s.clock.Set(c.timer, c.now()+c.s.cfg.StartTimeout)
	return nil
}

// Accept answers the request with a reply; Start has named the queue pair.
func (c *Conn) Accept(o Offer) {
	if c.state != connRequested || c.pending == nil {
		return
	}
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

// Reject refuses the request, with private data.
func (c *Conn) Reject(private []byte) {
	if c.state != connRequested {
		return
	}
	reply := refuse(&c.asked, private)
	if c.putFrame(&reply) {
		c.shut()
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

// Start is what the handshake agreed on.
type Start struct {
	QP       *qp.QP
	Passive  bool
	Patience clock.Time // for a silent peer; 0: as configured
}

// Start opens the connection for data and moves the queue pair to RTS. That of a passive
// side stays as it is until the reply is out, and what a urdmad says behind it has come.
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
		c.keepQuiet()
	}
	if c.terms.Extended {
		c.Takes = messages(c.terms.Extension.Capabilities)
		if !c.passive {
			c.out.put(appendExtension(nil, &c.offer.Extension))
			c.shown.skip = extensionLen
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

// fail ends a connection that was accepted and did not begin.
func (c *Conn) fail(why qp.CloseReason) {
	c.reason = why
	c.close()
	if !c.told {
		c.told = true
		c.s.handler.Closed(&c.Connection, why)
	}
}

// headStart is how long a peer has after its request or reply before the first FPDU comes.
// Who answers a request should even wait for the peer's first (RFC 5044 section 7.1.2), but
// the peer's program may wait for ours. One that comes while siw still reads the reply ends
// the connection, and one that comes while it still sends its own is not read before the
// next.
const headStart = 50 * clock.Millisecond

// keepQuiet gives the peer its head start. A peer to peer promised to begin.
func (c *Conn) keepQuiet() {
	c.quiet = c.now() + headStart
	if c.asked.Enhanced && c.asked.PeerToPeer {
		c.quiet = c.now() + c.s.cfg.StartTimeout
	}
	c.s.clock.Set(c.timer, c.quiet)
}

// speak ends the quiet.
func (c *Conn) speak() {
	if c.quiet != 0 {
		c.quiet = 0
		c.s.table.Ready(c.QP)
	}
}

// messages is what a peer with these capabilities takes.
func messages(capabilities uint32) (m qp.Messages) {
	for bit, message := range map[uint32]qp.Messages{wire.CapImmediate: qp.ImmediateData, wire.CapAtomic: qp.Atomics, wire.CapXRC: qp.XRC} {
		if capabilities&bit != 0 {
			m |= message
		}
	}
	return m
}

// maxSegment is the longest DDP segment: its FPDU's length field has 16 bits. Payloads
// are whole words.
const maxSegment = 65532

// segment is the longest DDP segment that goes to the peer: one whose FPDU fits a TCP
// segment, as RFC 5044 section 5 has it, or the longest for a peer that takes it.
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

// Serving is qp.Carrier's.
func (c *Conn) Serving() int { return c.stream.Serving() }

func (c *Conn) now() clock.Time { return c.s.clock.Now }

// live reports whether data flows.
func (c *Conn) live() bool { return c.state == connOpen || c.state == connDraining }

// receives reports whether what comes is read.
func (c *Conn) receives() bool { return c.live() && !c.rnr.Waiting() }

// watch asks the kernel for what the connection waits for.
func (c *Conn) watch() {
	var events uint32
	switch c.state {
	case connConnecting:
		events = unix.EPOLLOUT
	case connRequesting, connAwaiting, connStarting, connClosing:
		events = unix.EPOLLIN
	case connOpen, connDraining:
		if !c.rnr.Waiting() {
			events = unix.EPOLLIN
		}
	case connRequested:
		events = unix.EPOLLRDHUP
	}
	if c.out.full {
		events |= unix.EPOLLOUT
	}
	c.s.ask(c, events)
}

// Disconnect ends the connection in good order: work already posted goes out (for a
// second at most), then the end of the stream.
func (c *Conn) Disconnect() {
	if c.state == connOpen && c.QP != nil {
		c.QP.Post() // its bell may not be answered yet; a send queue that is wrong ends the connection
	}
	switch c.state {
	case connOpen:
		c.reason, c.state = qp.CloseLocal, connDraining
		c.s.clock.Set(c.timer, c.now()+drainTime)
		c.drain(c.now() + drainTime)
	case connDraining, connTerminating, connClosing, connClosed:
	default:
		if c.pending != nil { // accepted
			c.fail(qp.CloseLocal)
		}
		c.Release()
	}
}

func (c *Conn) drain(until clock.Time) {
	if c.state != connDraining {
		return
	}
	if c.now() >= until || c.QP == nil || c.QP.State() != abi.QPSRTS || c.stream.Drained() && c.out.empty() {
		c.finish()
		return
	}
	c.s.table.Ready(c.QP)
	t := clock.NewTimer(func() { c.drain(until) })
	c.s.clock.Set(t, min(until, c.now()+drainCheck))
}

// Release gives up a connection that was never started.
func (c *Conn) Release() {
	if c.state < connOpen {
		c.close()
	}
}

// Abort ends a connection whose peer never answered.
func (c *Conn) Abort() {
	switch {
	case c.live():
		c.reason = qp.CloseDead
		c.abort()
	case c.state == connStarting:
		c.fail(qp.CloseDead)
	}
}

// Failed is qp.Carrier's.
func (c *Conn) Failed() {
	if c.live() {
		c.reason = qp.CloseLocal
		c.finish()
	}
}

// Faulted is qp.Carrier's.
func (c *Conn) Faulted() bool { return c.placing }

// Detach is qp.Carrier's.
func (c *Conn) Detach() {
	c.Failed()
	if c.QP != nil {
		c.s.remember(c)
		c.QP.Detach()
		c.QP = nil
	}
}

// finish flushes the queue pair, ends our side of the stream and reports the end.
func (c *Conn) finish() {
	if !c.live() {
		return
	}
	kept := c.keepBegun()
	c.state = connTerminating
	c.leave()
	if kept {
		c.shut()
	} else {
		c.close()
	}
}

// leave flushes the queue pair and reports the end.
func (c *Conn) leave() {
	c.s.clock.Set(c.again, clock.Never)
	c.s.clock.Set(c.silence.timer, clock.Never)
	c.rnr.End()
	c.stream.Drop()
	if c.QP != nil {
		c.QP.Flush()
	}
	if !c.told {
		c.told = true
		c.s.handler.Closed(&c.Connection, c.reason)
	}
}

// abort ends the connection without order: the peer sees a reset.
func (c *Conn) abort() {
	if !c.live() {
		return
	}
	c.state = connTerminating
	c.leave()
	c.close()
}

// endWith ends the connection with a Terminate for a cause, behind what was composed.
func (c *Conn) endWith(message []byte, code wire.TermCode) {
	if !c.live() {
		return
	}
	c.flush()
	if !c.live() {
		return
	}
	kept := c.keepBegun()
	c.reason = qp.CloseTerminated
	c.QP.FlushWithEvent(rdmap.EventOf(code))
	c.state = connTerminating
	c.leave()
	if !kept {
		c.close()
		return
	}
	c.out.put(message)
	c.flush()
	c.shut()
}

// terminated takes the peer's Terminate.
func (c *Conn) terminated(seg *rdmap.Segment) {
	wire.FixTerminate(seg.Head[min(wire.UntaggedLen, len(seg.Head)):])
	code, err := c.stream.Terminated(seg)
	if !c.live() {
		return
	}
	c.s.log.Info("peer terminated the connection", "qpn", c.QP.QPN, "client", c.QP.Client.Name, "cause", code.String(), "error", err)
	c.reason = qp.CloseTerminated
	c.finish()
}

// revoked ends the connection because memory that a segment comes from was deregistered
// after the work began.
func (c *Conn) revoked(token uint64) {
	seg, code := c.stream.Revoked(token)
	if seg == nil {
		c.Failed()
		return
	}
	c.endWith(fpdu(c.stream.RefuseRevoked(seg, code), c.terms.CRC), code)
}

// shut ends our side of the stream once all has gone, and waits for the peer's end.
func (c *Conn) shut() {
	if c.state == connClosed {
		return
	}
	c.s.clock.Set(c.timer, c.now()+closeTime)
	if !c.out.empty() {
		c.state = connTerminating
		c.watch()
		return
	}
	c.state = connClosing
	_ = unix.Shutdown(c.fd, unix.SHUT_WR) // a reset connection is shut already
	c.showEnd(true)
	c.watch()
}

// lost ends a connection that TCP has given up or the peer has reset.
func (c *Conn) lost(errno unix.Errno) {
	if !c.live() {
		c.lostEarly(errno)
		return
	}
	c.s.log.Info("connection lost", "qpn", c.QP.QPN, "peer", c.Peer.String(), "error", errno.Error())
	c.reason = qp.CloseRemote
	if errno == unix.ETIMEDOUT || errno == unix.EHOSTUNREACH {
		c.reason = qp.CloseDead
		c.QP.FailOldest(abi.StatusRetryExcErr, 0)
	}
	c.abort()
}

// lostEarly ends a connection that has not begun, or is over.
func (c *Conn) lostEarly(errno unix.Errno) {
	was := c.state
	switch was {
	case connStarting:
		c.fail(qp.CloseRemote)
		return
	case connRequested:
		if c.pending != nil {
			c.fail(qp.CloseRemote)
			return
		}
		// The program is still to answer: it hears of the end when it does. The kernel
		// would go on to tell of it.
		c.s.ignore(c)
		return
	}
	c.close()
	if was == connConnecting || was == connRequesting {
		c.s.handler.Refused(c, errno)
	}
}

// ended: the peer sends nothing more.
func (c *Conn) ended() {
	c.showEnd(false)
	if !c.live() {
		c.lostEarly(unix.ECONNRESET)
		return
	}
	c.reason = qp.CloseRemote
	c.finish()
}

// faulted: the kernel could not touch the program's memory.
func (c *Conn) faulted() {
	c.s.log.Error("client memory cannot be touched; its queue pair fails", "qpn", c.QP.QPN, "client", c.QP.Client.Name)
	c.QP.FlushWithEvent(qp.EventAccess)
	c.abort()
}

// close gives the socket back. One with data that was not read, or not sent, is reset.
func (c *Conn) close() {
	if c.state == connClosed {
		return
	}
	c.state = connClosed
	c.s.clock.Set(c.timer, clock.Never)
	c.s.clock.Set(c.again, clock.Never)
	c.s.forget(c)
	if c.in.buf != nil {
		c.s.buffers.put(c.in.buf)
		c.in.buf = nil
	}
	c.out.reset(c.s)
}

// tick is the connection's timer: a step has taken too long.
func (c *Conn) tick() {
	switch c.state {
	case connConnecting, connRequesting:
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
		c.speak()
	case connTerminating, connClosing:
		c.close()
	}
}
