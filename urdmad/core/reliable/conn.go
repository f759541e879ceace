package reliable

import "urdma/wire"

// Conn is the reliability state of one connection. Call Init before using it. It may be embedded, but must
// not be copied after Init.
type Conn struct {
	cfg Config

	tx   sender
	rtt  rtt
	loss lossDetector
	cc   congestion
	tmr  timers

	rx  receiver
	ack ackPolicy

	live  liveness
	stats Counters
}

// Init makes c a new connection. Later it allocates only longer rings (rings.go).
func (c *Conn) Init(cfg Config) {
	cfg.normalize()
	*c = Conn{cfg: cfg}
	c.tx.init(&cfg)
	c.rtt.init(&cfg)
	c.loss.init()
	c.cc.init(&cfg)
	c.rx.init(&cfg)
	c.ack.init(&cfg)
	c.tmr.reorder = Never
	c.live.since = unknown
}

// Idle reports whether nothing is outstanding in either direction: every sent segment is acknowledged by
// the peer, every received one by us, and none is held.
func (c *Conn) Idle() bool {
	return c.tx.outstanding() == 0 && c.ack.due == Never && c.rx.nHeld == 0
}

// Acked returns the first PSN that the peer has not acknowledged.
func (c *Conn) Acked() wire.PSN { return c.tx.una }

// Next returns the PSN of the next new segment.
func (c *Conn) Next() wire.PSN { return c.tx.next }

// Expected returns the next PSN in order from the peer, which is the cumulative acknowledgement. Unlike
// Header, it does not record that the acknowledgement is sent.
func (c *Conn) Expected() wire.PSN { return c.rx.next }
