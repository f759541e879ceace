package reliable

import "urdma/urdmad/core/pingpong"

// ackPolicy decides when an acknowledgement goes without data to ride on.
//
// At once: after every few segments in order, on the AR flag, on a new hole
// and the segments right behind it, on a segment that fills one, on a
// duplicate. Otherwise it depends on what the peer seems to wait for.
//
// Quick, at the start: on the caller's next turn, in a stream of many segments
// once it pauses. A peer that posts one message and waits for its completion
// gets it soonest.
//
// Delayed: within delay, while the program here answers every message at once
// (package pingpong). The acknowledgement rides on the answer.
//
// Sparse: where packets are dear alone (Config.Batches), a stream whose segments
// follow each other within sparsePause is acknowledged less often. Its sender asks for
// acknowledgement where it ends, or is about to stand still; what one forgets to ask
// for comes after the pause.
type ackPolicy struct {
	pingpong.Detector     // of the answers of the program here
	every             int // segments in order that are acknowledged at once

	batches bool
	sparse  int // in place of every, in bulk

	pending int  // segments in order not yet acknowledged
	since   Time // arrival of the first of them
	now     bool // acknowledge at once
	sack    bool // report the held segments at once
	at      Time // since when one of these two holds
	due     Time // when AckDue will say yes; Never if nothing is owed

	answering bool // AckDue has said yes: the next header is no ride

	urgentSacks int // segments behind a new hole still to be reported at once

	// In bulk, more than bulkCount segments per delay, quick waits for a
	// short pause, or it would acknowledge every few segments.
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
	// sacksPerHole is what the peer's reordering threshold needs to see.
	sacksPerHole = 4
)

func (a *ackPolicy) init(cfg *Config) {
	*a = ackPolicy{Detector: pingpong.Detector{Delay: cfg.AckDelay}, batches: cfg.Batches, due: Never}
	a.credited(cfg.RecvWindow)
}

// credited sets how many segments are acknowledged at once: fewer of a small window,
// which must not run dry while the acknowledgement waits for more.
func (a *ackPolicy) credited(window int) {
	quarter := max(window/4, 1)
	a.every, a.sparse = min(quarter, maxEvery), min(quarter, maxSparse)
	if !a.batches {
		a.sparse = a.every
	}
}

// limit is how many segments in order are acknowledged at once now.
func (a *ackPolicy) limit() int {
	if a.bulk && !a.On() {
		return a.sparse
	}
	return a.every
}

// rearm sets due from the rest.
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

// atOnce has an acknowledgement go at once.
func (a *ackPolicy) atOnce(now Time) {
	if !a.now && !a.sack {
		a.at = now
	}
	a.now = true
	a.rearm()
}

// inOrder counts a segment that arrived in order.
func (a *ackPolicy) inOrder(now Time) {
	a.Asked(now)
	a.count(now)
	if a.pending == 0 {
		a.since = now
	}
	a.pending++
	if a.pending >= a.limit() {
		a.atOnce(now)
	}
	a.rearm()
}

// outOfOrder counts a segment that was held. Behind the first few of a hole,
// those that follow are reported like segments in order: by number and delay.
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

// reverse notes data of ours.
func (a *ackPolicy) reverse(now Time) {
	if a.Answered(now) {
		a.rearm()
	}
}

// wentOut notes a header with the cumulative acknowledgement. A SACK that is
// owed stays owed.
func (a *ackPolicy) wentOut() {
	if a.pending > 0 && !a.answering {
		a.Useful() // it rode
	}
	a.pending, a.now, a.answering = 0, false, false
	a.rearm()
}

func (a *ackPolicy) sackWentOut() {
	a.sack = false
	a.rearm()
}

// ready reports whether something must go now.
func (a *ackPolicy) ready(now Time) bool {
	if now < a.due {
		return false
	}
	if a.now || a.sack || !a.On() {
		return true
	}
	a.Needless()
	a.atOnce(now)
	return true
}

// AckKind is the kind of packet that is due.
type AckKind uint8

const (
	AckNone  AckKind = iota
	AckPlain         // a data packet without a segment, from Header
	AckSack          // a SACK packet, from Header and SackRuns
)

// String names the kind for transcripts.
func (k AckKind) String() string {
	switch k {
	case AckPlain:
		return "ack"
	case AckSack:
		return "sack"
	}
	return "none"
}

// AckDue says whether a packet must go for the acknowledgement's sake, and
// which. Ask once a turn, after everything that arrived was processed and
// everything that can be sent was sent.
func (c *Conn) AckDue(now Time) AckKind {
	a := &c.ack
	if a.sack && c.rx.nHeld == 0 {
		a.sackWentOut() // the hole was filled first
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
