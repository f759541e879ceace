package reliable

import "urdma/urdmad/core/pingpong"

// ackPolicy decides when an acknowledgement is sent without data to carry it.
//
// At once: after a few segments in order, on the AR flag, on a new hole and the segments right behind it,
// on a segment that fills a hole, on a duplicate. Otherwise it depends on the peer's apparent behaviour.
//
// Quick, at the start: on the caller's next turn; in a stream of many segments, once the stream pauses. A
// peer that posts one message and waits for its completion gets it as early as possible.
//
// Delayed: within delay, while our program answers each message at once (package pingpong). The answer
// carries the acknowledgement.
//
// Sparse: if single packets are expensive (Config.Batches), a stream whose segments follow each other
// within sparsePause is acknowledged less often. Its sender asks for an acknowledgement when the stream
// ends or is about to stall. If it fails to ask, the acknowledgement is sent after the pause.
type ackPolicy struct {
	pingpong.Detector     // of our program's answers
	every             int // segments in order after which an acknowledgement is sent at once

	batches bool
	sparse  int // used instead of every in bulk

	pending int  // segments in order not yet acknowledged
	since   Time // arrival of the first pending segment
	now     bool // acknowledge at once
	sack    bool // report the held segments at once
	at      Time // since when now or sack is set
	due     Time // when AckDue returns a packet; Never if nothing is owed

	answering bool // AckDue has returned a packet, so the next header is not a carried acknowledgement

	urgentSacks int // segments after a new hole that are still to be reported at once

	// In bulk, with more than bulkCount segments per delay, quick waits for a short pause. Otherwise it
	// would acknowledge every few segments.
	bulk      bool
	last      Time // arrival of the last segment
	rateCount int
	rateSince Time
}

const (
	maxEvery    = 16
	maxSparse   = 128
	sparsePause = 50 * Microsecond
	bulkCount   = 32
	bulkPause   = 2 * Microsecond
	// sacksPerHole is the number of reports that the peer's reordering threshold requires.
	sacksPerHole = 4
)

func (a *ackPolicy) init(cfg *Config) {
	*a = ackPolicy{Detector: pingpong.Detector{Delay: cfg.AckDelay}, batches: cfg.Batches, due: Never}
	a.setWindow(cfg.RecvWindow)
}

// setWindow sets after how many segments an acknowledgement is sent at once: fewer for a small window,
// which must not be exhausted while the acknowledgement waits for more segments.
func (a *ackPolicy) setWindow(window int) {
	quarter := max(window/4, 1)
	a.every, a.sparse = min(quarter, maxEvery), min(quarter, maxSparse)
	if !a.batches {
		a.sparse = a.every
	}
}

// limit returns the present number of segments in order after which an acknowledgement is sent at once.
func (a *ackPolicy) limit() int {
	if a.bulk && !a.On() {
		return a.sparse
	}
	return a.every
}

// rearm computes due from the other fields.
func (a *ackPolicy) rearm() {
	switch {
	case a.now || a.sack:
		a.due = a.at
	case a.pending == 0:
		a.due = Never
	case a.bulk && !a.On() && a.pending >= a.every:
		a.due = a.last + sparsePause
	case a.bulk && !a.On():
		a.due = a.last + bulkPause
	case !a.On():
		a.due = a.since
	default:
		a.due = a.since + a.Delay
	}
}

// acknowledgeNow makes an acknowledgement due at once.
func (a *ackPolicy) acknowledgeNow(now Time) {
	if !a.now && !a.sack {
		a.at = now
	}
	a.now = true
	a.rearm()
}

// inOrder records a segment that arrived in order.
func (a *ackPolicy) inOrder(now Time) {
	a.Asked(now)
	a.count(now)
	if a.pending == 0 {
		a.since = now
	}
	a.pending++
	if a.pending >= a.limit() {
		a.acknowledgeNow(now)
	}
	a.rearm()
}

// outOfOrder records a held segment. After the first few segments following a hole, further ones are
// reported like segments in order: by number and delay.
func (a *ackPolicy) outOfOrder(now Time, urgent bool) {
	if urgent {
		a.urgentSacks = sacksPerHole
	}
	if a.urgentSacks == 0 {
		a.inOrder(now)
		return
	}
	a.urgentSacks--
	if !a.now && !a.sack {
		a.at = now
	}
	a.sack = true
	a.rearm()
}

// count measures the rate of arrivals.
func (a *ackPolicy) count(now Time) {
	a.last = now
	switch age := now - a.rateSince; {
	case age > 2*a.Delay:
		a.bulk, a.rateCount, a.rateSince = false, 0, now
	case age > a.Delay:
		a.bulk, a.rateCount, a.rateSince = a.rateCount >= bulkCount, 0, now
	}
	if a.rateCount++; a.rateCount >= bulkCount {
		a.bulk = true
	}
}

// dataSent records that we sent data.
func (a *ackPolicy) dataSent(now Time) {
	if a.Answered(now) {
		a.rearm()
	}
}

// headerSent records that a header with the cumulative acknowledgement was sent. A SACK that is owed
// remains owed.
func (a *ackPolicy) headerSent() {
	if a.pending > 0 && !a.answering {
		a.Useful() // data carried the acknowledgement
	}
	a.pending, a.now, a.answering = 0, false, false
	a.rearm()
}

func (a *ackPolicy) sackSent() {
	a.sack = false
	a.rearm()
}

// ready reports whether an acknowledgement must be sent now.
func (a *ackPolicy) ready(now Time) bool {
	if now < a.due {
		return false
	}
	if a.now || a.sack || !a.On() {
		return true
	}
	a.Needless()
	a.acknowledgeNow(now)
	return true
}

// AckKind is the kind of packet that acknowledges.
type AckKind uint8

const (
	AckNone  AckKind = iota
	AckPlain         // a data packet without a segment, from Header
	AckSack          // a SACK packet, from Header and SackRuns
)

// String returns the kind's name for transcripts.
func (k AckKind) String() string {
	switch k {
	case AckPlain:
		return "ack"
	case AckSack:
		return "sack"
	}
	return "none"
}

// AckDue returns the kind of packet that must be sent only to acknowledge, if any. The caller calls it once
// per turn, after it has processed all received packets and sent everything that may be sent.
func (c *Conn) AckDue(now Time) AckKind {
	a := &c.ack
	if a.sack && c.rx.nHeld == 0 {
		a.sackSent() // the hole was filled before the SACK was sent
	}
	if !a.ready(now) {
		return AckNone
	}
	a.answering = true
	if a.sack || c.rx.nHeld > 0 {
		return AckSack
	}
	return AckPlain
}
