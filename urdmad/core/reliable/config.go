package reliable

import (
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// Time is a time of the caller's monotonic clock.
type Time = clock.Time

// Never is later than every time.
const Never = clock.Never

// Units of Time.
const (
	Microsecond = clock.Microsecond
	Millisecond = clock.Millisecond
	Second      = clock.Second
)

// Defaults for zero values in Config.
const (
	DefaultWindow       = 1024
	DefaultDeathTimeout = 4 * Second
	// DefaultMinRTO is longer than the 4 ms for which a busy machine with few cores may suspend a peer: a
	// shorter timeout would mostly detect suspended peers.
	DefaultMinRTO     = 5 * Millisecond
	DefaultMaxRTO     = 500 * Millisecond
	DefaultInitialRTO = 20 * Millisecond
	// DefaultAckDelay is long enough for an answer that the scheduler delayed. Measured with two daemons
	// and two clients on two cores, ib_write_lat over memif: with 20, 50 and 100 µs about half of the runs
	// settled at 20 to 55 µs, because a few slow answers ended the ping-pong and the spinning began; with
	// 200 µs all six runs stayed at 6 to 11 µs.
	DefaultAckDelay = 200 * Microsecond
	// The default target of congestion control is half of the path's least round trip, within these limits.
	// A longer queue would not help, and would use the part of Window that is needed for sending while a
	// loss is repaired.
	MinTargetDelay = 50 * Microsecond
	MaxTargetDelay = 200 * Microsecond
	// DefaultInitialCwnd is a burst that any receive ring can hold; slow start doubles it each round trip.
	DefaultInitialCwnd = 64
)

// MaxWindow bounds both windows: 10 Gb/s with a round trip of 50 ms are 43,000 segments of 1,500 bytes.
const MaxWindow = 1 << 16

// Config has the parameters of a connection. Init replaces zeros by defaults and limits values out of
// range, so every Config gives a working Conn.
type Config struct {
	LocalISN wire.PSN // first PSN we send
	PeerISN  wire.PSN // first PSN the peer sends

	// Window is the number of unacknowledged segments that we keep, and RecvWindow the number of segments
	// past the cumulative acknowledgement that we can hold out of order. Both are rounded up to a power of
	// two, at most MaxWindow.
	Window     int
	RecvWindow int

	// Rings provides memory for the records of many segments, and takes it back; nil: the connection keeps
	// what it allocates.
	Rings *Rings

	// PeerWindow is the receive window in the peer's handshake, in segments; 0 if it had none: then the
	// peer's first packet sets it.
	PeerWindow int

	// Batches says that at either end a packet in a batch costs much less than a single packet. Then a
	// stream from the peer is acknowledged less often (ackPolicy), and we ask for an acknowledgement at the
	// end of our streams (WantAR).
	Batches bool

	MinRTO       Time // shortest retransmission timeout
	MaxRTO       Time // longest retransmission timeout, at most a quarter of DeathTimeout
	InitialRTO   Time // before the first round-trip sample
	DeathTimeout Time // silence with outstanding segments after which the connection ends
	AckDelay     Time // longest time that an acknowledgement waits for data to carry it

	// KeepAlive is how long the peer of an idle connection may be silent before it is probed; 0: unlimited.
	// It is at most half of DeathTimeout, so that a dead peer is detected within that time.
	KeepAlive Time

	// TargetDelay is the queueing delay that congestion control tolerates in addition to the path's own
	// round trip; 0: derived from the round trip.
	TargetDelay Time

	// InitialCwnd is the initial congestion window, in segments.
	InitialCwnd int
}

// normalize fills in defaults and limits values.
func (cfg *Config) normalize() {
	cfg.Window, cfg.RecvWindow = WindowSize(cfg.Window), WindowSize(cfg.RecvWindow)
	orDefault(&cfg.DeathTimeout, DefaultDeathTimeout)
	orDefault(&cfg.MaxRTO, DefaultMaxRTO)
	orDefault(&cfg.MinRTO, DefaultMinRTO)
	orDefault(&cfg.InitialRTO, DefaultInitialRTO)
	orDefault(&cfg.AckDelay, DefaultAckDelay)
	// Several timeouts must fit into the death timeout, or one lost probe would end the connection.
	cfg.MaxRTO = max(1, min(cfg.MaxRTO, cfg.DeathTimeout/4))
	cfg.MinRTO = min(cfg.MinRTO, cfg.MaxRTO)
	cfg.InitialRTO = min(max(cfg.InitialRTO, cfg.MinRTO), cfg.MaxRTO)
	if cfg.KeepAlive = max(0, cfg.KeepAlive); cfg.KeepAlive > 0 {
		cfg.KeepAlive = max(1, min(cfg.KeepAlive, cfg.DeathTimeout/2))
	}
	if cfg.PeerWindow <= 0 || cfg.PeerWindow > cfg.Window {
		cfg.PeerWindow = cfg.Window
	}
	if cfg.InitialCwnd <= 0 {
		cfg.InitialCwnd = DefaultInitialCwnd
	}
	cfg.InitialCwnd = min(max(cfg.InitialCwnd, minCwnd), cfg.Window)
}

func orDefault(t *Time, def Time) {
	if *t <= 0 {
		*t = def
	}
}

// WindowSize rounds n up to a power of two within 1 and MaxWindow.
func WindowSize(n int) int {
	if n <= 0 {
		return DefaultWindow
	}
	size := 1
	for size < n && size < MaxWindow {
		size *= 2
	}
	return size
}
