package reliable

// rtt estimates the round-trip time (RFC 6298) and keeps the least recent one, which is the estimate for
// the path without queues.
type rtt struct {
	srtt   Time // 0 before the first sample
	rttvar Time
	latest Time

	// The minimum over the last one to two spans, so that after a while a longer route is recognised.
	least     Time
	lastLeast Time // of the previous span
	spanEnd   Time
	renewed   bool // a span has ended, and the least round trip has not been measured anew yet (drain)
	ever      Time // least round trip of the connection; Never before the first sample

	backoff uint // number of doublings of the timeout

	min, max, initial, ackDelay Time
}

// A minimum round trip is valid for at least minSpan, and for at least spanTrips round trips: measuring it
// anew costs about one round trip (drain).
const (
	minSpan   = 2 * Second
	spanTrips = 200
)

// An answer took long if it took at least 1/longForTimeout of the timeout.
const longForTimeout = 4

func (r *rtt) init(cfg *Config) {
	*r = rtt{
		least: Never, lastLeast: Never, ever: Never,
		min: cfg.MinRTO, max: cfg.MaxRTO, initial: cfg.InitialRTO, ackDelay: cfg.AckDelay,
	}
}

// sample processes one measurement. The caller applies Karn's rule: only segments that were sent once are
// measured.
func (r *rtt) sample(now, m Time) {
	m = max(m, 1)
	r.latest = m
	r.sampleLeast(now, m)
	if r.srtt == 0 {
		r.srtt, r.rttvar = m, m/2
		return
	}
	dev := r.srtt - m
	if dev < 0 {
		dev = -dev
	}
	r.rttvar += (dev - r.rttvar) / 4
	r.srtt = max(1, r.srtt+(m-r.srtt)/8)
}

func (r *rtt) sampleLeast(now, m Time) {
	if now >= r.spanEnd {
		r.lastLeast, r.least = r.least, Never
		r.renewed = r.spanEnd > 0
		r.spanEnd = r.nextSpan(now)
	}
	r.least, r.ever = min(r.least, m), min(r.ever, m)
}

// nextSpan returns when the span that begins now ends: at a multiple of its length, so that spans of all
// connections with the same clock end together.
func (r *rtt) nextSpan(now Time) Time {
	span := minSpan
	for span < spanTrips*r.srtt {
		span *= 2
	}
	return (now/span + 1) * span
}

// base returns the least recent round trip; Never before the first sample.
func (r *rtt) base() Time { return min(r.least, r.lastLeast) }

// timeout returns the retransmission timeout including backoff. It allows for the peer's acknowledgement
// delay, which is assumed to equal ours.
func (r *rtt) timeout() Time {
	t := r.initial
	if r.srtt != 0 {
		t = r.srtt + 4*r.rttvar + r.ackDelay
		t = min(max(t, r.min), r.max)
	}
	for range r.backoff {
		if t *= 2; t >= r.max {
			return r.max
		}
	}
	return t
}

// backOff doubles the timeout (RFC 6298 section 5.5).
func (r *rtt) backOff() {
	if r.timeout() < r.max {
		r.backoff++
	}
}

// probeTimeout returns how long the last segment waits for acknowledgement before one segment is resent as
// a tail loss probe (RFC 8985 section 7.2). It is at least a quarter of the shortest timeout, so that a
// suspended peer is not probed every few microseconds.
func (r *rtt) probeTimeout() Time {
	if r.srtt == 0 {
		return r.initial / 2
	}
	return max(2*r.srtt+r.ackDelay, r.min/4)
}
