package reliable

// congestion keeps the congestion window, in segments, once a round trip.
//
// Delay rules it: while the least round trip of a round is within target of
// the path's own, the window grows; after three rounds beyond it (one pause
// of the peer can spoil two, those of the segments it caught in flight) it
// shrinks in proportion. Without any loss it does not shrink below floor, nor does
// slow start end before: where a sleeping peer looks like a long queue, that much is
// still in flight. Loss that has nothing to do with the queue counts as none here.
//
// Loss alone is congestion only where it is heavy, as when a short queue
// overflows: that a segment in a hundred is lost says nothing about the
// queue. It is heavy if it was in this round and has been over the last few, by
// chance a path that loses one in twenty loses one in sixteen in every sixth
// round; without a queue in front of it, or on a path that loses as much
// without one (losses), twice as much is. The loss of a whole window, found by
// timeout, collapses it.
//
// Where many share a queue that holds a few segments of each, a window is too small
// to lose manyLost in a round, so those of the last rounds count too; it gives way by
// up to half, and grows by an eighth, one at least: by more, all of them together would
// fill the queue anew in each round.
type congestion struct {
	window int
	thresh int // slow start below, additive increase from here
	floor  int
	top    int // the most at present: short, or max on a long path
	short  int
	max    int
	// giveWay: others with little to send wait in the queue that the window fills, so
	// half of target rules it, and it goes down to a part of floor.
	giveWay bool
	target  Time // 0: follows the path

	// This round.
	roundEnd uint32 // it ends when a transmission from this number on has arrived
	least    Time   // least round trip
	samples  int
	nAcked   int
	lost     int
	limited  bool // the window was full at some time

	recentAcked int // of about the last averageRounds, and this one
	recentLost  int
	lossless    int // rounds in a row without loss

	losses losses
	drains drain

	calm       int  // rounds on a long path that grew, since the last with a queue
	wasLimited bool // of the last round
	high       int  // rounds in a row beyond target
	highLost   bool // with loss in one of them
}

const (
	minCwnd     = 2
	maxIncrease = 4 // segments a round
	highRounds  = 3
	// heavyLoss is the part of a round, 1/16, and manyLost the number that
	// make loss congestion.
	heavyLoss = 16
	manyLost  = 8
	// leastShrink is what heavy loss takes of a window, half of it at most.
	leastShrink = 4
	// averageRounds are what recent loss is averaged over, and stormLoss is the part
	// of a round and of the window, 1/4, that needs no others beside it.
	averageRounds = 8
	stormLoss     = 4
	// forgetRounds without loss take away what division leaves of the average: so little
	// adds up otherwise, and losses far apart would be many to a small window.
	forgetRounds = 64
	// giveWayPart is the part of floor that is left to a connection that gives way.
	giveWayPart = 4
	// longPath is the least round trip from which on a window goes beyond the default
	// one: that is 12 Gb/s there, of 1,500 bytes a segment, and more on shorter paths.
	// What lies in their queues is ours, or a busy core's, however large the window.
	longPath = Millisecond
	// There a round adds 1/128 to the window, as much as elsewhere at least, after each 8 calm ones
	// as much more; and beyond the default window the queue may take 1/32 of the path's
	// round trip.
	longIncrease = 128
	calmIncrease = 8
	longTarget   = 32
	// frontSamples of a round tell whether it begins with a queue, of half of the path's
	// round trip: what slow start sends at a time makes shorter ones.
	frontSamples = 8
	frontQueue   = 2
	// shortQueue is the part of the path's round trip, 1/16, that a queue takes.
	shortQueue = 16
)

func (g *congestion) init(cfg *Config) {
	short := cfg.Window
	if cfg.Wide {
		short = min(short, DefaultWindow)
	}
	*g = congestion{
		window: min(cfg.InitialCwnd, max(short, minCwnd)),
		thresh: short,
		floor:  max(minCwnd, short/4),
		short:  max(minCwnd, short),
		top:    max(minCwnd, short),
		max:    max(minCwnd, cfg.Window),
		target: cfg.TargetDelay,
		least:  Never,
	}
}

// reach says how far the window may go on a path with that least round trip of all
// times: what a queue adds to it later doesn't make a path long.
func (g *congestion) reach(least Time) {
	top := g.short
	if least != Never && least >= longPath {
		top = g.max
	}
	if top > g.top && g.thresh >= g.top {
		g.thresh = top // slow start goes on
	}
	g.top = top
	g.window, g.thresh = min(g.window, top), min(g.thresh, top)
}

// long reports whether the window is one of those that only long paths have.
func (g *congestion) long() bool { return g.window > g.short }

// sample takes a measured round trip, and what they are at least and on average.
func (g *congestion) sample(rtt, base, mean Time) {
	g.least = min(g.least, rtt)
	if g.samples++; g.samples == frontSamples && g.window >= g.short && g.top > g.short {
		g.endSlowStart(base)
	}
	g.losses.sample(rtt, base, mean, g.targetFor(base))
}

// acked takes n newly acknowledged segments; slow start grows by them.
func (g *congestion) acked(n int) {
	g.nAcked += n
	g.losses.acked(n)
	if g.window < g.thresh && g.drains.rounds == 0 && (g.limited || g.wasLimited) {
		g.window = min(g.window+n, g.thresh)
	}
}

// oneLost takes a segment that was found lost, lateAfterAll takes that back.
func (g *congestion) oneLost() {
	g.lost++
	g.losses.oneLost()
}

func (g *congestion) lateAfterAll() { g.lost = max(0, g.lost-1) }

// endRound adjusts the window; base is the path's least round trip.
func (g *congestion) endRound(base Time) {
	if g.drained() {
		return
	}
	queue := Time(0)
	if g.least != Never && base != Never {
		queue = g.least - base
	}
	target := g.targetFor(base)
	if g.giveWay {
		target /= 2
	}
	g.recentAcked += g.nAcked - g.recentAcked/averageRounds
	g.recentLost += g.lost - g.recentLost/averageRounds
	if g.lossless++; g.lost > 0 {
		g.lossless = 0
	} else if g.lossless == forgetRounds {
		g.recentLost = 0
	}
	switch {
	case g.lossIsHeavy(queue > base/shortQueue && !g.losses.random()):
		g.shrink(max(g.window/5, min(g.window/2, leastShrink)), minCwnd)
	case queue > target:
		g.beyond(queue, target, base)
	case g.window < g.thresh:
		if queue > target/2 {
			g.thresh = min(g.thresh, max(g.window, g.lowest())) // the queue has begun to build up
		}
		g.high = 0
	default:
		if g.least != Never && g.limited {
			g.window = min(g.window+g.increase(), g.top)
		}
		g.high = 0
	}
	if g.high == 0 {
		g.highLost = false
	}
	g.wasLimited, g.limited = g.limited, false
	g.nAcked, g.lost, g.least, g.samples = 0, 0, Never, 0
}

// endSlowStart ends it where a round begins with a queue (the idea of RFC 9406): to wait
// for the round's end would double a long path's window once more.
func (g *congestion) endSlowStart(base Time) {
	if g.least-base > base/frontQueue {
		g.thresh = min(g.thresh, max(g.window, g.lowest()))
	}
}

// increase is by how much the window grows in a round: on a long path the more the
// longer no queue has been seen, or what a loss has cost would take minutes to come back.
func (g *congestion) increase() int {
	least := min(max(g.window/8, 1), maxIncrease)
	if g.top == g.short {
		return least
	}
	g.calm++
	by := min(1+g.calm/calmIncrease, longIncrease/16)
	return by * max(least, g.window/longIncrease)
}

// lossIsHeavy reports whether what was lost in this round is congestion; queued
// tells that all of it met a queue.
func (g *congestion) lossIsHeavy(queued bool) bool {
	heavy := heavyLoss
	if !queued {
		heavy /= 2
	}
	many := g.lost >= manyLost || g.lost > 0 && g.recentLost >= manyLost
	if !many || g.lost*heavy <= g.nAcked {
		return false
	}
	return g.lost*stormLoss > max(g.nAcked, g.window) || g.recentLost*heavy > g.recentAcked
}

func (g *congestion) targetFor(base Time) Time {
	target := g.target
	switch {
	case target > 0:
	case base == Never:
		target = MaxTargetDelay
	default:
		target = min(max(base/2, MinTargetDelay), MaxTargetDelay)
	}
	if g.long() && base != Never {
		return max(target, base/longTarget) // routers and ends jitter by more than that
	}
	return target
}

// beyond handles a round with too long a queue. It is not ours to shorten
// if our window was not full.
func (g *congestion) beyond(queue, target, base Time) {
	if !g.limited && !g.wasLimited {
		g.high = 0
		return
	}
	g.calm = 0
	g.highLost = g.highLost || g.lost > 0 && !g.losses.random()
	floor := g.lowest()
	if g.highLost {
		floor = minCwnd
	}
	g.thresh = min(g.thresh, max(g.window, floor))
	if g.high++; g.high < highRounds {
		return
	}
	g.shrink(max(1, g.excess(queue, target, base)), floor)
}

// excess is by how much too long a queue shrinks the window. On a long path it is
// all that lies in the queue, so that the path's own round trip is seen again before
// it is forgotten: else each of them would be measured with a queue, and the next
// queue be added to it.
func (g *congestion) excess(queue, target, base Time) int {
	if g.long() {
		return int(int64(queue) * int64(g.window) / int64(base+queue))
	}
	return int(int64(queue-target) * int64(g.window) / int64(queue) / 2)
}

// lowest is how far delay alone shrinks the window.
func (g *congestion) lowest() int {
	if g.giveWay {
		return max(minCwnd, g.floor/giveWayPart)
	}
	return g.floor
}

// shrink takes by segments off the window, not below floor, and ends slow
// start, which goes as far as floor.
func (g *congestion) shrink(by, floor int) {
	if g.window > floor {
		g.window = max(g.window-by, floor)
	}
	g.thresh = min(g.thresh, max(g.window, floor))
	g.high, g.highLost, g.calm = 0, false, 0
}

// halve sets where slow start will end, collapse closes the window: both
// answer a timeout. restore takes that back.
func (g *congestion) halve() { g.thresh = max(g.window/2, minCwnd) }

func (g *congestion) collapse() {
	g.window = minCwnd
	g.limited = true
}

func (g *congestion) restore(window, thresh int) {
	g.window, g.thresh = max(g.window, window), max(g.thresh, thresh)
}
