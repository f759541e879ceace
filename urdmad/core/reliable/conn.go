package reliable

import "urdma/wire"

// Conn is the reliability state of one connection. The zero value is not
// usable: Init first. It may be embedded, but not copied after Init.
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

// Init makes c a new connection. What it allocates later is longer rings (rings.go).
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

// Idle reports that nothing is outstanding in either direction: every segment
// sent is acknowledged, every one received has been acknowledged and none is
// held.
func (c *Conn) Idle() bool {
	return c.tx.outstanding() == 0 && c.ack.due == Never && c.rx.nHeld == 0
}

// Acked returns the first PSN that the peer has not acknowledged.
func (c *Conn) Acked() wire.PSN { return c.tx.una }

// Next returns the PSN that the next Send gives its segment.
func (c *Conn) Next() wire.PSN { return c.tx.next }

// Expected returns the next PSN in order from the peer: the cumulative
// acknowledgement, without noting that it went out as Header does.
func (c *Conn) Expected() wire.PSN { return c.rx.next }
