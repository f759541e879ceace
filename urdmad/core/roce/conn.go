package roce

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// Conn is one connection: a qp.Carrier whose peer is the queue pair that its program has
// named.
type Conn struct {
	qp.Connection

	s    *Stack
	port *Port
	peer wire.QPN

	transport roce.Opcode // RC or XRC

	path      netif.Path
	class     uint8 // of its packets: the bits that are not for congestion
	open      bool  // the way to the peer is known
	resolving bool

	req     rc.Requester
	resp    rc.Responder
	mtu     uint32
	answers []answer // by slot
	write   write
	placing bool // memory is being written for the peer

	shake *handshake // of rdma_cm; nil: by number
	psn   roce.PSN   // of the peer's first request, as we tell it (InfiniBand vol. 1)

	head        roce.Header // of the packet that is being built
	answered    bool        // the last packet was an answer's: answers and requests take turns
	notice      bool        // of congestion, to be sent to the peer
	noticeAfter clock.Time  // no other is before
	timer       *clock.Timer
	unwritten   qp.Unwritten // by number of the peer's request
	closed      bool
}

// write is the peer's Write that is under way.
type write struct {
	stag   mem.STag
	va     uint64
	length uint32 // of all of it
}

// mostReads stands for the Reads that a peer serves which has not said how many: what its program
// sets as max_rd_atomic counts.
const mostReads = 255

// Serve connects a queue pair that has entered RTR with the one that its attributes name,
// at an address.
func (s *Stack) Serve(q *qp.QP, dev int, peer netip.Addr) {
	p, a := s.ports[dev], &q.Attr
	c := &Conn{s: s, port: p, peer: wire.QPN(a.DestQPNum), mtu: uint32(MTUs[a.PathMTU-1])}
	c.Dev, c.Local, c.Peer = dev, p.local(), netip.AddrPortFrom(peer, roce.Port)
	c.ByNumber, c.IRD, c.ORD, c.QP = true, uint16(a.MaxDestRdAtomic), mostReads, q
	c.class = uint8(a.TrafficClass)
	c.speak(transportOf(q))
	c.timer = clock.NewTimer(c.ready)
	c.serve(int(a.MaxDestRdAtomic), roce.PSN(a.RQPSN))
	c.begin()
	s.conns[wire.QPN(q.QPN)] = c
	q.Attach(c)
	c.resolve()
}

// transportOf is what a queue pair's packets go by: those of XRC domains, and their peers,
// have one of their own.
func transportOf(q *qp.QP) roce.Opcode {
	if q.Type == abi.QPTypeXRCSend || q.Type == abi.QPTypeXRCRecv {
		return roce.XRC
	}
	return roce.RC
}

func (c *Conn) speak(transport roce.Opcode) {
	c.transport, c.Takes = transport, qp.ImmediateData|qp.Atomics
	if transport == roce.XRC {
		c.Takes |= qp.XRC
	}
}

// serve readies the responder: so many Reads of the peer's are served at a time, and its
// first request has a PSN.
func (c *Conn) serve(reads int, first roce.PSN) {
	c.resp.Init(first, c.mtu, reads, &c.s.Stats.RC)
	c.answers = make([]answer, c.resp.Slots())
	c.unwritten.Init(c.QP)
}

// begin readies the requester. The queue pair has what it needs in RTS, and sends nothing
// before.
func (c *Conn) begin() {
	a := &c.QP.Attr
	c.req.Init(rc.Config{PSN: roce.PSN(a.SQPSN), MTU: c.mtu, Window: c.window(), Reads: int(a.MaxRdAtomic)}, &c.s.Stats.RC)
	c.limits()
}

// window is how many packets may be under way: no more than wait in a port like ours.
func (c *Conn) window() int { return c.port.If.ReceiveWindow() / 4 }

func (c *Conn) limits() {
	a := &c.QP.Attr
	timeout, rnr := clock.Time(0), int(a.RNRRetry)
	if a.Timeout != 0 {
		timeout = max(4*clock.Time(4096)<<a.Timeout, leastTimeout) // up to four times as long (InfiniBand vol. 1)
	}
	if rnr == qp.RNRForever {
		rnr = rc.NoLimit
	}
	c.req.Limits(timeout, int(a.RetryCnt), rnr)
}

// leastTimeout is what shorter time-outs are raised to: peers may be processes, and the
// scheduler may keep one from running for longer than a wire takes.
const leastTimeout = 60 * clock.Millisecond

// Changed: the queue pair's attributes were changed. entered: it has entered RTS from RTR.
func (s *Stack) Changed(c *Conn, entered bool) {
	if entered {
		c.begin()
	} else {
		c.limits()
	}
}

// resolve finds the way to the peer.
func (c *Conn) resolve() {
	n := c.port.If
	hop, ok := n.NextHop(c.Peer.Addr())
	if !ok || c.resolving || c.open {
		return
	}
	c.resolving = true
	n.Resolve(hop, func(l netif.Link, ok bool) {
		c.resolving = false
		switch {
		case c.closed || c.open:
		case ok:
			c.reach(l)
		case c.QP.SQ.Outstanding() > 0:
			c.s.Stats.Unreachable++
			c.fail(rc.Heard{Failure: rc.NoAnswer, Token: c.QP.SQ.Head()})
		}
	})
}

// reach has packets leave by a link.
func (c *Conn) reach(l netif.Link) {
	c.open = true
	c.path = c.port.If.Path(l, netip.AddrPortFrom(c.Local.Addr(), roce.SourcePort(c.peer)), netip.AddrPortFrom(c.Peer.Addr(), roce.Port))
	c.path.SetTrafficClass(c.class&^3 | capable)
	c.path.Follow()
	c.ready()
}

func (c *Conn) now() clock.Time { return c.s.clock.Now }

func (c *Conn) ready() {
	if c.live() {
		c.s.table.Ready(c.QP)
	}
}

// live reports whether messages come and go.
func (c *Conn) live() bool { return !c.closed && c.QP != nil }

// Serving is qp.Carrier's.
func (c *Conn) Serving() int { return c.resp.Owed() }

// Faulted is qp.Carrier's: what was being placed is not acknowledged.
func (c *Conn) Faulted() bool { return c.placing }
