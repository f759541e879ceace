package cm_test

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// connState is the state of a connection.
type connState int

const (
	opening  connState = iota // the manager's handshake
	open                      // data flows
	draining                  // to be ended once posted work is done
	ending                    // fin sent
	closed                    // answers late packets until its port number is free
)

const (
	deathTimeout = 4 * sec
	probeEvery   = 1 * sec
	finEvery     = 100 * ms
	finTries     = 5
	quietTime    = 1 * sec
	maxDrain     = 1 * sec
)

// conn is a connection without data: acknowledgements, probes and fins, with
// the rules of docs/WIRE.md chapter 4. It is cm.Conn.
type conn struct {
	h        *host
	id       *cm.ID
	port     uint16
	peer     netip.AddrPort
	isn      wire.PSN
	cookie   uint32
	sameHost bool
	other    *conn // the other end, on the same host

	state   connState
	s       cm.Start
	timer   *clock.Timer
	tries   int
	heard   bool       // anything of the peer's
	heardAt clock.Time // last
	why     cm.EndReason
	remote  bool // ended by the peer
	drained clock.Time
}

func (c *conn) Owner() *cm.ID { return c.id }
func (c *conn) Port() uint16  { return c.port }

func (c *conn) Send(p *cm.Message) {
	p.Number = uint32(c.isn)
	e := wire.TRPExtension{Cookie: c.cookie, MaxSegment: 1400, RecvWindow: 64}
	if qp := c.id.QueuePair(); qp != nil {
		e.QPN = wire.QPN(qp.Number())
	}
	c.h.sendMessage(p, &e)
}

func (c *conn) Start(s cm.Start) {
	if c.state != opening || !s.QP.Connectable() {
		c.h.w.t.Errorf("connection of %v is started in state %d, its queue pair is connectable: %v", c.peer, c.state,
			s.QP.Connectable())
	}
	c.s, c.state, c.heardAt = s, open, c.h.w.now
	qp := s.QP.(*queuePair)
	qp.conn, qp.used = c, true
	if c.sameHost {
		return
	}
	c.peer = netip.AddrPortFrom(c.peer.Addr(), s.PeerPort)
	if !s.Passive {
		c.send(wire.OpData, wire.FlagAckRequested)
	}
	c.set(probeEvery)
}

func (c *conn) set(d clock.Time) { c.h.w.timers.Set(c.timer, c.h.w.now+d) }

// Disconnect lets work that was posted take its time.
func (c *conn) Disconnect() {
	switch c.state {
	case opening:
		c.Release()
	case open:
		c.state = draining
		c.drained = c.h.w.now + clock.Time(c.h.w.rand.Int64N(int64(maxDrain)))
		c.set(c.drained - c.h.w.now)
	}
}

func (c *conn) Abort() {
	if c.state == open {
		c.why = cm.EndSilent
		c.finish()
	}
}

func (c *conn) Release() {
	if c.state == opening {
		c.free()
	}
}

func (c *conn) free() {
	c.state = closed
	c.h.w.timers.Set(c.timer, clock.Never)
	if c.h.conns[c.port] == c {
		delete(c.h.conns, c.port)
	}
}

// finish tells everybody of the end.
func (c *conn) finish() {
	if c.state != open && c.state != draining {
		return
	}
	c.state, c.tries = ending, 0
	if o := c.other; o != nil {
		o.remote = true
		c.other, o.other = nil, nil
		o.finish()
	}
	c.h.m.Closed(c.id, c.why)
	switch {
	case c.sameHost:
		c.free()
	case c.why == cm.EndSilent:
		c.close()
	default:
		c.send(wire.OpFin, 0)
		c.set(finEvery)
		if c.s.Passive && !c.heard {
			c.state, c.tries = closed, 1
			c.set(deathTimeout)
		}
	}
}

func (c *conn) close() {
	c.state = closed
	c.set(quietTime)
}

func (c *conn) tick() {
	switch c.state {
	case open:
		if c.h.w.now-c.heardAt >= deathTimeout {
			c.why = cm.EndSilent
			c.finish()
			return
		}
		if c.heard || !c.s.Passive {
			c.send(wire.OpData, wire.FlagAckRequested)
		}
		c.set(probeEvery)
	case draining:
		c.finish()
	case ending:
		if c.tries++; c.tries >= finTries {
			c.close()
			return
		}
		c.send(wire.OpFin, 0)
		c.set(finEvery)
	case closed:
		c.free()
	}
}

func (c *conn) send(op wire.TRPOp, flags uint16) {
	t := wire.TRP{PSN: c.isn, Ack: wire.PSN(c.s.PeerNumber), Op: op, Credits: 64, Flags: flags,
		Cookie: c.s.Offer.(*wire.TRPExtension).Cookie}
	b := make([]byte, wire.TRPExtLen)
	n := t.Put(b)
	c.h.w.send(c.h, datagram{netip.AddrPortFrom(c.h.addr, c.port), c.peer, b[:n]})
}

// receive takes a packet that may be the connection's.
func (c *conn) receive(d datagram) {
	var t wire.TRP
	if _, err := t.Parse(d.payload); err != nil || d.from != c.peer ||
		t.Cookie != c.cookie || t.Ack != c.isn || uint32(t.PSN) != c.s.PeerNumber {
		return
	}
	if c.state == ending || c.state == closed {
		c.late(t.Op)
		return
	}
	c.heardAt = c.h.w.now
	if !c.heard {
		c.heard = true
		if c.s.Passive && t.Op != wire.OpFin {
			c.h.m.Established(c.id)
		}
	}
	switch {
	case t.Op == wire.OpFin:
		c.remote = true
		c.finish()
		c.close()
	case t.Flags&wire.FlagAckRequested != 0:
		c.send(wire.OpData, 0)
	}
}

// late answers packets of a connection that has ended here.
func (c *conn) late(op wire.TRPOp) {
	switch {
	case op == wire.OpFin && c.state == ending:
		c.close()
	case op == wire.OpFin && c.remote:
		c.send(wire.OpFin, 0)
	case op == wire.OpFin:
	case c.state == closed && c.tries < finTries:
		c.tries++
		c.send(wire.OpFin, 0)
	}
}

// queuePair is cm.QueuePair.
type queuePair struct {
	number uint32
	conn   *conn
	used   bool // it would have to be reset
	gone   bool
}

func (h *host) newQP() *queuePair {
	h.qpns++
	return &queuePair{number: h.qpns}
}

func (q *queuePair) Number() uint32    { return q.number }
func (q *queuePair) Connectable() bool { return !q.gone && !q.used }
func (q *queuePair) Gone() bool        { return q.gone }

// destroy ends a connection without draining it.
func (q *queuePair) destroy() {
	if q.gone = true; q.conn != nil {
		q.conn.finish()
	}
}
