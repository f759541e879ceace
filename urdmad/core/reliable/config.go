package reliable

import (
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// Time is the caller's monotonic clock's.
type Time = clock.Time

// Never is later than every time.
const Never = clock.Never

// Units of Time.
const (
	Microsecond = clock.Microsecond
	Millisecond = clock.Millisecond
	Second      = clock.Second
)

// Defaults that a zero in Config stands for.
const (
	DefaultWindow       = 1024
	DefaultDeathTimeout = 4 * Second
	// DefaultMinRTO is above the 4 ms for which a busy machine of few cores
	// can deschedule a peer: a shorter timeout would mostly find sleepers.
	DefaultMinRTO     = 5 * Millisecond
	DefaultMaxRTO     = 500 * Millisecond
	DefaultInitialRTO = 20 * Millisecond
	// DefaultAckDelay is long enough for an answer that the scheduler held up.
	// Two daemons and two clients on two cores, ib_write_lat over memif: with
	// 20, 50 and 100 µs about half the runs settled at 20 to 55 µs, because a
	// few slow answers ended the ping-pong and the spinning began; with
	// 200 µs all six stayed at 6 to 11 µs.
	DefaultAckDelay = 200 * Microsecond
	// The default target of congestion control is half of the path's least
	// round trip, within these. A longer queue would cover no more, and eat
	// of Window what must be left for sending on while a loss is repaired.
	MinTargetDelay = 50 * Microsecond
	MaxTargetDelay = 200 * Microsecond
	// DefaultInitialCwnd is a burst that any receive ring holds; slow start
	// doubles it each round trip.
	DefaultInitialCwnd = 64
)

// MaxWindow bounds both windows: credits have 12 bits on the wire, and a
// window of the whole 4096 could not be stated. MaxWideWindow does where they have 20
// (Config.Wide): 10 Gb/s for 50 ms there and back are 43,000 segments of 1,500 bytes.
const (
	MaxWindow     = 2048
	MaxWideWindow = 1 << 16
)

// Config is what a connection starts from. Init replaces zeros by defaults
// and clamps what is out of range, so every Config gives a working Conn.
type Config struct {
	LocalISN wire.PSN // first PSN we send
	PeerISN  wire.PSN // first PSN the peer sends

	// Window is the number of unacknowledged segments we keep, and
	// RecvWindow the number past the cumulative acknowledgement that we can
	// hold out of order. Both are rounded up to a power of two, at most
	// MaxWindow, or MaxWideWindow.
	Window     int
	RecvWindow int

	// Rings are where the connection takes room for the records of many
	// segments from and gives it back to; nil: it keeps what it took.
	Rings *Rings

	// PeerWindow is the receive window the peer stated when connecting, in
	// segments; 0 if it stated none, and then its first packet says.
	PeerWindow int

	// Wide says that both sides state and read credits of 20 bits.
	Wide bool

	// Batches says that packets are cheap together and dear alone, on either side's
	// way: fewer acknowledgements go while the peer sends a stream (ackPolicy), and
	// one is asked for where a stream of ours ends (WantAR).
	Batches bool

	MinRTO       Time // shortest retransmission timeout
	MaxRTO       Time // longest, at most a quarter of DeathTimeout
	InitialRTO   Time // before the first round-trip sample
	DeathTimeout Time // silence, with something outstanding, that ends the connection
	AckDelay     Time // longest an acknowledgement waits for data to ride on

	// KeepAlive is how long the peer of an idle connection may be silent
	// before it is probed; 0 means for ever. At most half of DeathTimeout,
	// so that a dead peer is noticed within it.
	KeepAlive Time

	// TargetDelay is the queueing delay above the path's own round trip that
	// congestion control tolerates; 0 has it follow the round trip.
	TargetDelay Time

	// InitialCwnd is the congestion window at the start, in segments.
	InitialCwnd int
}

// normalize fills in defaults and clamps.
func (cfg *Config) normalize() {
	most := MaxWindow
	if cfg.Wide {
		most = MaxWideWindow
	}
	cfg.Window = min(WindowSize(cfg.Window), most)
	cfg.RecvWindow = min(WindowSize(cfg.RecvWindow), most)
	orDefault(&cfg.DeathTimeout, DefaultDeathTimeout)
	orDefault(&cfg.MaxRTO, DefaultMaxRTO)
	orDefault(&cfg.MinRTO, DefaultMinRTO)
	orDefault(&cfg.InitialRTO, DefaultInitialRTO)
	orDefault(&cfg.AckDelay, DefaultAckDelay)
	// Several timeouts must fit before death, or one lost probe would kill.
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

// WindowSize rounds n up to a power of two within 1 and MaxWideWindow.
func WindowSize(n int) int {
	if n <= 0 {
		return DefaultWindow
	}
	size := 1
	for size < n && size < MaxWideWindow {
		size *= 2
	}
	return size
}
