package reliable

// congestion adjusts the congestion window, in segments, once per round trip.
//
// Delay controls it. While the least round trip of a round exceeds the path's own by at most target, the
// window grows. After three rounds beyond target it shrinks in proportion. (One pause of the peer can spoil
// two rounds: those whose segments were in flight.) Without loss, the window does not shrink below floor,
// and slow start does not end before floor: a suspended peer looks like a long queue, and floor segments
// must still be in flight. Loss that is independent of the queue is not congestion.
//
// Loss alone is congestion only if it is heavy, as when a short queue overflows: the loss of one segment in
// a hundred says nothing about the queue. Loss is heavy if its share exceeds the limit in this round and
// over the last few rounds; by chance, a path that loses one in twenty loses one in sixteen in every sixth
// round. The limit is twice as high if there is no queue, or if the path loses as much without a queue
// (losses). The loss of a whole window, detected by a timeout, collapses the window.
//
// If much of a round is lost and there is a queue, the window becomes what arrived in the round.
//
// If many connections share a queue that holds a few segments of each, a window is too small to lose
// manyLost in a round, so losses of the last rounds count too. Such a window shrinks by up to half and
// grows by an eighth, but at least by one: with faster growth all connections together would fill the queue
// again in each round.
type congestion struct {
	window int
	thresh int // below it slow start, from it on additive increase
	floor  int
	top    int // present limit of the window: short, or max on a long path
	short  int
	max    int
	// giveWay: connections with little to send wait in the queue that the window fills. Then half of target
	// applies, and the window may shrink to a part of floor.
	giveWay bool
	target  Time // 0: derived from the path

	// State of this round.
	roundEnd uint32 // the round ends when this or a later transmission has arrived
	least    Time   // least round trip
	samples  int
	nAcked   int
	lost     int
	limited  bool // the window was full at some time in the round

	recentAcked int // segments acknowledged in about the last averageRounds rounds
	recentLost  int
	lossless    int // consecutive rounds without loss

	losses losses
	drains drain

	calm       int  // rounds of growth on a long path since the last one with a queue
	wasLimited bool // limited, of the last round
	high       int  // consecutive rounds beyond target
	highLost   bool // one of those rounds had a loss
}

const (
	minCwnd     = 2
	maxIncrease = 4 // segments per round
	highRounds  = 3
	// Loss is congestion if it is at least 1/heavyLoss of a round and at least manyLost segments.
	heavyLoss = 16
	manyLost  = 8
	// leastShrink is the least number of segments by which heavy loss shrinks a window, limited to half of
	// it.
	leastShrink = 4
	// averageRounds is the number of rounds over which recent loss is averaged. 1/stormLoss is the part of
	// a round and of the window whose loss is heavy without regard to earlier rounds.
	averageRounds = 8
	stormLoss     = 4
	// After forgetRounds rounds without loss the average is reset: integer division never brings it to 0,
	// and for a small window the rest of rare losses would add up to many.
	forgetRounds = 64
	// 1/giveWayPart of floor is left to a connection that gives way.
	giveWayPart = 4
	// longPath is the least round trip from which on a window may exceed the default window. There the
	// default window gives 12 Gb/s with segments of 1,500 bytes, and more on shorter paths. The queues of
	// shorter paths are our own or a busy core's, whatever the window.
	longPath = Millisecond
	// On a long path a round adds 1/longIncrease of the window, but not less than on other paths; after
	// every 8 calm rounds it adds that amount once more. Beyond the default window the queue may take 1/32
	// of the path's round trip.
	longIncrease = 128
	calmIncrease = 8
	longTarget   = 32
	// The first frontSamples samples of a round show whether it begins with a queue of 1/frontQueue of the
	// path's round trip; bursts of slow start cause shorter queues.
	frontSamples = 8
	frontQueue   = 2
	// A queue shorter than 1/shortQueue of the path's round trip counts as none.
	shortQueue = 16
)

func (g *congestion) init(cfg *Config) {
	short := min(cfg.Window, DefaultWindow)
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

// setTop sets how large the window may become on a path with this least round trip, of the whole
// connection: a queue that appears later doesn't make a path long.
func (g *congestion) setTop(least Time) {
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

// long reports whether the window is larger than those of short paths.
func (g *congestion) long() bool { return g.window > g.short }

// sample processes a measured round trip; base is the least round trip.
func (g *congestion) sample(rtt, base Time) {
	g.least = min(g.least, rtt)
	if g.samples++; g.samples == frontSamples && g.window >= g.short && g.top > g.short {
		g.endSlowStart(base)
	}
	g.losses.sample(rtt, base, g.targetFor(base))
}

// acked counts n newly acknowledged segments, by which slow start grows the window.
func (g *congestion) acked(n int) {
	g.nAcked += n
	g.losses.acked(n)
	if g.window < g.thresh && g.drains.rounds == 0 && (g.limited || g.wasLimited) {
		g.window = min(g.window+n, g.thresh)
	}
}

// countLost counts a segment found lost.
func (g *congestion) countLost() {
	g.lost++
	g.losses.countLost()
}

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
		g.shrink(max(g.window/5, min(g.window/2, leastShrink), g.overshoot(queue, target)), minCwnd)
	case queue > target:
		g.longQueue(queue, target, base)
	case g.window < g.thresh:
		if queue > target/2 {
			g.thresh = min(g.thresh, max(g.window, g.lowest())) // the queue has begun to grow
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

// endSlowStart ends slow start if a round begins with a queue (the idea of RFC 9406): by the end of the
// round a long path's window would have doubled once more.
func (g *congestion) endSlowStart(base Time) {
	if g.least-base > base/frontQueue {
		g.thresh = min(g.thresh, max(g.window, g.lowest()))
	}
}

// increase returns by how much the window grows in a round. On a long path it grows faster the longer no
// queue has been seen; otherwise it would take minutes to recover from a loss.
func (g *congestion) increase() int {
	least := min(max(g.window/8, 1), maxIncrease)
	if g.top == g.short {
		return least
	}
	g.calm++
	by := min(1+g.calm/calmIncrease, longIncrease/16)
	return by * max(least, g.window/longIncrease)
}

// lossIsHeavy reports whether the loss in this round is congestion; queued means that all of it met a
// queue.
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

// overshoot returns by how much the window exceeds what has arrived in a round that lost much of it. If the round trips
// are short, as after an outage or on a new, shorter route, the window was not too large; if none was measured, nothing
// is known of a queue.
func (g *congestion) overshoot(queue, target Time) int {
	if g.least == Never || queue <= target || g.lost*stormLoss <= max(g.nAcked, g.window) {
		return 0
	}
	return g.window - g.nAcked
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
		return max(target, base/longTarget) // jitter of routers and hosts exceeds shorter targets
	}
	return target
}

// longQueue handles a round with too long a queue. If our window was not full, packets of other
// senders make up the queue, and a smaller window would not shorten it.
func (g *congestion) longQueue(queue, target, base Time) {
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

// excess returns by how many segments too long a queue shrinks the window. On a long path it is the whole
// queue, so that the path's own round trip is measured again before it expires. Otherwise each new
// measurement would include a queue, and the next queue would be added to it.
func (g *congestion) excess(queue, target, base Time) int {
	if g.long() {
		return int(int64(queue) * int64(g.window) / int64(base+queue))
	}
	return int(int64(queue-target) * int64(g.window) / int64(queue) / 2)
}

// lowest returns the limit to which delay alone shrinks the window.
func (g *congestion) lowest() int {
	if g.giveWay {
		return max(minCwnd, g.floor/giveWayPart)
	}
	return g.floor
}

// shrink reduces the window by segments, but not below floor, and ends slow start, which continues up to
// floor.
func (g *congestion) shrink(by, floor int) {
	if g.window > floor {
		g.window = max(g.window-by, floor)
	}
	g.thresh = min(g.thresh, max(g.window, floor))
	g.high, g.highLost, g.calm = 0, false, 0
}

// halve sets where slow start will end; collapse closes the window. Both respond to a timeout; restore
// undoes them.
func (g *congestion) halve() { g.thresh = max(g.window/2, minCwnd) }

func (g *congestion) collapse() {
	g.window = minCwnd
	g.limited = true
}

func (g *congestion) restore(window, thresh int) {
	g.window, g.thresh = max(g.window, window), max(g.thresh, thresh)
}
