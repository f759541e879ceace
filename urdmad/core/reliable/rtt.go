package reliable

// rtt estimates the round-trip time (RFC 6298) and keeps the least one seen
// lately, which stands for the path without queues.
type rtt struct {
	srtt   Time // 0 before the first sample
	rttvar Time
	latest Time

	// The minimum over the last one to two spans, so that a route that got
	// longer is believed after a while.
	least     Time
	lastLeast Time // of the span before
	spanEnd   Time
	renewed   bool // a span has ended, and nobody has looked for the least yet
	ever      Time // the least of all, Never before the first sample

	backoff uint // doublings of the timeout

	min, max, initial, ackDelay Time
}

// minSpan is how long a minimum round trip is believed, at least, and spanTrips how many
// round trips: looking for it anew costs about one (drain).
const (
	minSpan   = 2 * Second
	spanTrips = 200
)

// longForTimeout is the part of the timeout, 1/4, from which on an answer took long.
const longForTimeout = 4

func (r *rtt) init(cfg *Config) {
	*r = rtt{
		least: Never, lastLeast: Never, ever: Never,
		min: cfg.MinRTO, max: cfg.MaxRTO, initial: cfg.InitialRTO, ackDelay: cfg.AckDelay,
	}
}

// sample takes one measurement. Karn's rule is the caller's: only segments
// that were sent once are measured.
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

// nextSpan is when the span that begins now ends: at a multiple of its length, so that
// spans of connections with one clock end together.
func (r *rtt) nextSpan(now Time) Time {
	span := minSpan
	for span < spanTrips*r.srtt {
		span *= 2
	}
	return (now/span + 1) * span
}

// base is the least round trip seen lately, Never before the first sample.
func (r *rtt) base() Time { return min(r.least, r.lastLeast) }

// timeout is the retransmission timeout with its backoff. It allows for the
// peer's acknowledgement delay, taken to be like ours.
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

// probeTimeout is how long the tail waits for acknowledgement before one
// segment is resent to ask for it (RFC 8985 section 7.2). A quarter of the
// shortest timeout bounds it below: a peer that merely sleeps is not asked
// every few microseconds.
func (r *rtt) probeTimeout() Time {
	if r.srtt == 0 {
		return r.initial / 2
	}
	return max(2*r.srtt+r.ackDelay, r.min/4)
}
