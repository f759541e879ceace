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

// Conn is one connection: a qp.Carrier whose peer is the queue pair that the program named.
type Conn struct {
	qp.Connection

	s    *Stack
	port *Port
	peer wire.QPN

	transport roce.Opcode // RC or XRC

	path      netif.Path
	class     uint8 // traffic class of its packets, without the ECN bits
	open      bool  // the path to the peer is known
	resolving bool

	req     rc.Requester
	resp    rc.Responder
	mtu     uint32
	answers []answer // by slot
	write   write
	placing bool // memory is being written by the peer's request

	shake *setup   // state of a connection of rdma_cm; nil: by number
	psn   roce.PSN // of the peer's first request, which we choose (InfiniBand vol. 1)

	head        roce.Header // of the packet that is being built
	answered    bool        // the last packet was an answer; answers and requests alternate
	notice      bool        // a CNP is to be sent to the peer
	noticeAfter clock.Time  // the next CNP is not sent earlier
	timer       *clock.Timer
	unwritten   qp.Unwritten // writes to memory in progress, by number of the peer's request
	closed      bool
}

// write is the peer's Write that is arriving.
type write struct {
	stag   mem.STag
	va     uint64
	length uint32 // of the whole Write
}

// mostReads is the assumed number of outstanding Reads that a peer accepts if it states none: the program's
// max_rd_atomic limits them.
const mostReads = 255

// Serve connects a queue pair that has entered RTR with the queue pair in its attributes, at an address.
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

// transportOf returns the transport of a queue pair's packets: queue pairs of XRC domains and their peers
// have one of their own.
func transportOf(q *qp.QP) roce.Opcode {
	if q.Type == abi.QPTypeXRCSend || q.Type == abi.QPTypeXRCRecv {
		return roce.XRC
	}
	return roce.RC
}

func (c *Conn) speak(transport roce.Opcode) {
	c.transport, c.PeerAccepts = transport, qp.ImmediateData|qp.Atomics
	if transport == roce.XRC {
		c.PeerAccepts |= qp.XRC
	}
}

// serve starts the responder: it accepts a number of Reads at a time, and the peer's first request has the
// PSN first.
func (c *Conn) serve(reads int, first roce.PSN) {
	c.resp.Init(first, c.mtu, reads, &c.s.Stats.RC)
	c.answers = make([]answer, c.resp.Slots())
	c.unwritten.Init(c.QP)
}

// begin starts the requester. A queue pair has its parameters in RTS, and sends nothing before.
func (c *Conn) begin() {
	a := &c.QP.Attr
	c.req.Init(rc.Config{PSN: roce.PSN(a.SQPSN), MTU: c.mtu, Window: c.window(), Reads: int(a.MaxRdAtomic)}, &c.s.Stats.RC)
	c.limits()
}

// window returns how many packets may be in flight: at most as many as a port like ours can queue.
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

// leastTimeout is the least time-out of a queue pair: peers may be processes, and the scheduler may suspend
// one for longer than the network takes.
const leastTimeout = 60 * clock.Millisecond

// Changed applies changed attributes of the queue pair. entered means that it has entered RTS from RTR.
func (s *Stack) Changed(c *Conn, entered bool) {
	if entered {
		c.begin()
	} else {
		c.limits()
	}
}

// resolve finds the path to the peer.
func (c *Conn) resolve() {
	n := c.port.If
	if c.resolving || c.open {
		return
	}
	c.resolving = true
	resolved := func(l netif.Link, ok bool) {
		c.resolving = false
		switch {
		case c.closed || c.open:
		case ok:
			c.reach(l)
		case c.QP.SQ.Outstanding() > 0:
			c.s.Stats.Unreachable++
			c.fail(rc.Heard{Failure: rc.NoAnswer, Token: c.QP.SQ.Head()})
		}
	}
	if hop, ok := n.NextHop(c.Peer.Addr()); ok {
		n.Resolve(hop, resolved)
	} else {
		resolved(netif.Link{}, false)
	}
}

// reach makes packets leave by a link.
func (c *Conn) reach(l netif.Link) {
	c.open = true
	c.path = c.port.If.Path(l, netip.AddrPortFrom(c.Local.Addr(), roce.SourcePort(c.peer)),
		netip.AddrPortFrom(c.Peer.Addr(), roce.Port))
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

// live reports whether data flows.
func (c *Conn) live() bool { return !c.closed && c.QP != nil }

// Serving implements qp.Carrier.
func (c *Conn) Serving() int { return c.resp.Owed() }

// Faulted implements qp.Carrier: the data being placed is not acknowledged.
func (c *Conn) Faulted() bool { return c.placing }
