package qpconnect_test

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
	"urdma/urdmad/core/qpconnect"
	"urdma/urdmad/core/trp"
	"urdma/wire"
)

// This file is a network for tests of managers: two hosts on one link, a virtual clock, and packets that are lost,
// duplicated and delayed.

const (
	ms  = clock.Millisecond
	sec = clock.Second
)

// world is the hosts and the link between them. All random decisions come from rand.
type world struct {
	t            testing.TB
	rand         *rand.Rand
	now          clock.Time
	timers       clock.Timers
	hosts        []*host
	loss, double float64
	delay        clock.Time
	sent         map[wire.TRPOp]int
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 0x9)), delay: ms, sent: map[wire.TRPOp]int{}}
	for i := range 2 {
		h := &host{w: w, addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), conns: map[uint16]*conn{}, nextPort: 50000}
		h.m = qpconnect.New(qpconnect.Config{Network: h, Log: slog.New(slog.DiscardHandler), Addrs: []netip.Addr{h.addr},
			Timeout: 4 * sec})
		w.hosts = append(w.hosts, h)
	}
	return w
}

func (w *world) after(d clock.Time, fn func()) { w.timers.Set(clock.NewTimer(fn), w.now+d) }

// until lets time pass until fn holds; it returns false if it doesn't within the limit.
func (w *world) until(limit clock.Time, fn func() bool) bool {
	for end := w.now + limit; !fn(); {
		if w.timers.Next() > end {
			w.now = end
			return fn()
		}
		w.now = max(w.now, w.timers.Next())
		w.timers.Run(w.now)
	}
	return true
}

func (w *world) pass(d clock.Time) { w.until(d, func() bool { return false }) }

// packet is a packet between two hosts.
type packet struct {
	from, to netip.AddrPort
	trp.Packet
}

// send carries a datagram, or loses it. A packet of the handshake is carried as bytes.
func (w *world) send(p packet) {
	w.sent[p.TRP.Op]++
	if w.rand.Float64() < w.loss {
		return
	}
	b := make([]byte, p.Connect.Len())
	if p.TRP.Op.IsControl() {
		if _, err := p.Connect.Put(b); err != nil {
			w.t.Fatal(err)
		}
	}
	copies := 1
	for w.rand.Float64() < w.double && copies < 4 {
		copies++
	}
	for range copies {
		w.after(1+clock.Time(w.rand.Int64N(int64(w.delay))), func() {
			for _, h := range w.hosts {
				if h.addr == p.to.Addr() {
					h.receive(p, b)
				}
			}
		})
	}
}

// host is a machine with one address: qpconnect.Network.
type host struct {
	w        *world
	m        *qpconnect.Manager
	addr     netip.Addr
	conns    map[uint16]*conn
	qps      []*queuePair
	nextPort uint16
}

func (h *host) Now() clock.Time                   { return h.w.now }
func (h *host) Set(t *clock.Timer, at clock.Time) { h.w.timers.Set(t, at) }
func (h *host) Random() uint32                    { return h.w.rand.Uint32() }

var network = netip.MustParsePrefix("10.0.0.0/24")

func (h *host) NextHop(_ int, dst netip.Addr) (netip.Addr, bool) { return dst, network.Contains(dst) }

func (h *host) Resolve(_ int, hop, _ netip.Addr, done func(cm.Link, bool)) {
	h.w.after(clock.Time(h.w.rand.Int64N(int64(ms))), func() { done(hop, h.w.rand.Float64() >= h.w.loss) })
}

// receive passes a packet to its connection or to the manager.
func (h *host) receive(p packet, body []byte) {
	c := h.conns[p.to.Port()]
	if !p.TRP.Op.IsControl() {
		if c != nil {
			c.receive(p)
		}
		return
	}
	in := &cm.Message{Link: p.from.Addr(), Local: p.to, Peer: p.from}
	if err := trp.Decode(in, &p.TRP, body); err != nil {
		h.w.t.Fatal(err)
	}
	switch {
	case in.Kind == handshake.Request:
		h.m.Request(in)
	case c != nil && c.started && in.Answers == uint32(c.isn) && p.from == c.packet(0).to:
		c.acknowledge() // the first acknowledgement was lost
	case c == nil || !h.m.Accept(c.pair, in):
		h.w.send(packet{p.to, p.from, trp.FinOf(in)})
	}
}

func (h *host) Await(v *qpconnect.Pair) { v.QP.(*queuePair).peer = nil }

func (h *host) Open(v *qpconnect.Pair) (qpconnect.Conn, error) {
	h.nextPort++
	if h.conns[h.nextPort] != nil {
		return nil, syscall.EADDRINUSE
	}
	c := &conn{h: h, pair: v, port: h.nextPort, isn: wire.PSN(h.w.rand.Uint32()), cookie: h.w.rand.Uint32() | 1}
	h.conns[c.port] = c
	return c, nil
}

func (h *host) Join(a, b *qpconnect.Pair) {
	qa, qb := a.QP.(*queuePair), b.QP.(*queuePair)
	qa.peer, qb.peer = qb, qa
}

// conn is one end of a connection.
type conn struct {
	h       *host
	pair    *qpconnect.Pair
	port    uint16
	isn     wire.PSN
	cookie  uint32
	started bool
	over    bool
	heard   bool
	s       cm.Start
	fins    int
}

func (c *conn) Port() uint16   { return c.port }
func (c *conn) Number() uint32 { return uint32(c.isn) }
func (c *conn) Cookie() uint32 { return c.cookie }

func (c *conn) Send(p *cm.Message, qp cm.QueuePair) {
	if p.Link != cm.Link(p.Peer.Addr()) || p.Local.Addr() != c.h.addr {
		c.h.w.t.Errorf("%v sends from %v to %v by %v", c.h.addr, p.Local, p.Peer, p.Link)
	}
	p.Number = uint32(c.isn)
	offer := &wire.TRPExtension{QPN: wire.QPN(qp.Number()), MaxSegment: 1400, RecvWindow: 64}
	c.h.w.send(packet{p.Local, p.Peer, trp.PacketOf(p, offer)})
}

func (c *conn) Start(s cm.Start, _ *handshake.ByNumber) {
	c.started, c.s = true, s
	q := c.pair.QP.(*queuePair)
	q.conn = c
	if !s.Passive {
		c.acknowledge()
	}
}

func (c *conn) packet(op wire.TRPOp) packet {
	return packet{netip.AddrPortFrom(c.h.addr, c.port), netip.AddrPortFrom(c.pair.Peer.Addr, c.s.PeerPort),
		trp.Packet{TRP: wire.TRP{Op: op, PSN: c.isn, Ack: wire.PSN(c.s.PeerNumber),
			Cookie: c.s.Offer.(*wire.TRPExtension).Cookie}}}
}

func (c *conn) acknowledge() { c.h.w.send(c.packet(wire.OpData)) }

// receive takes the peer's acknowledgement, or its fin.
func (c *conn) receive(p packet) {
	if !c.started || c.over || p.TRP.Cookie != c.cookie || p.from != c.packet(0).to || p.TRP.Ack != c.isn {
		return
	}
	if p.TRP.Op == wire.OpFin {
		c.end(true)
		return
	}
	if c.s.Passive && !c.heard {
		c.heard = true
		c.h.m.Established(c.pair)
	}
}

func (c *conn) end(again bool) {
	if c.over {
		return
	}
	c.over = true
	delete(c.h.conns, c.port)
	if q := c.pair.QP.(*queuePair); q.conn == c {
		q.conn = nil
	}
	c.h.m.Closed(c.pair, again)
}

func (c *conn) Abort() { c.end(true) }

func (c *conn) Release() {
	if !c.started {
		delete(c.h.conns, c.port)
	}
}

// fin sends the fins of an end that was reset; in this network they are not answered.
func (c *conn) fin() {
	if c.fins++; c.fins <= 5 {
		c.h.w.send(c.packet(wire.OpFin))
		c.h.w.after(100*ms, c.fin)
	}
}

// queuePair is a queue pair and its program.
type queuePair struct {
	h          *host
	n          uint32
	pair       *qpconnect.Pair
	conn       *conn
	peer       *queuePair // on the same host
	patience   clock.Time
	sendsBegun bool // its sends have begun
	exhausted  bool
}

func (h *host) newQP(n uint32) *queuePair {
	q := &queuePair{h: h, n: n, patience: 2 * sec}
	h.qps = append(h.qps, q)
	return q
}

func (q *queuePair) Number() uint32       { return q.n }
func (q *queuePair) Connectable() bool    { return true }
func (q *queuePair) Gone() bool           { return false }
func (q *queuePair) Patience() clock.Time { return q.patience }

func (q *queuePair) SendsBegun() bool { return q.sendsBegun }

func (q *queuePair) Exhaust() {
	q.exhausted = true
	q.reset()
}

func (q *queuePair) end() qpconnect.End { return qpconnect.End{Addr: q.h.addr, QPN: q.n} }

// rtr is the move to RTR.
func (q *queuePair) rtr(peer qpconnect.End) {
	if q.pair != nil {
		return
	}
	q.pair = q.h.m.Start(qpconnect.Params{QP: q, Peer: peer, IRD: 3, MinRNRTimer: 12})
}

// reset is the move to RESET, or to ERR.
func (q *queuePair) reset() {
	v, c, peer := q.pair, q.conn, q.peer
	q.pair, q.conn, q.peer = nil, nil, nil
	switch {
	case v == nil:
	case c != nil:
		c.end(false)
		c.fin()
	case peer != nil:
		q.h.m.Closed(v, false)
		if peer != q {
			peer.peer = nil
			peer.h.m.Closed(peer.pair, true)
		}
	default:
		q.h.m.Stop(v)
	}
}

// joined reports whether two queue pairs have one connection.
func joined(a, b *queuePair) bool {
	if a.pair == nil || b.pair == nil || a.pair.State() != qpconnect.Connected || b.pair.State() != qpconnect.Connected {
		return false
	}
	if a.h == b.h {
		return a.peer == b && b.peer == a
	}
	return a.conn != nil && b.conn != nil && a.conn.s.PeerPort == b.conn.port && b.conn.s.PeerPort == a.conn.port &&
		a.conn.s.PeerNumber == b.conn.Number() && b.conn.s.PeerNumber == a.conn.Number()
}
