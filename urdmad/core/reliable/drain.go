package reliable

// drain lets the queue in front of a path run empty for a moment, so that the path's
// own round trip is seen. Delay is measured from the least round trip of late; a stream
// that always has target in the queue would take more and more of that queue for the path
// each time the least is renewed, and one that comes to a queue that others keep never
// sees the path at all (as BBR's ProbeRTT, Cardwell et al. 2016).
//
// It takes two rounds: in the first what was under way before arrives, in the second what
// met the shorter queue. Connections of one machine drain together, as rtt renews by the
// clock: else each would measure the others' queue.
type drain struct {
	rounds int // still to come
	resume int // window afterwards
}

const drainRounds = 2

// begin returns the window to drain with: half of what the path takes without a queue.
func (d *drain) begin(window int, base, mean Time) int {
	d.rounds, d.resume = drainRounds, window
	return min(window, max(minCwnd, int(int64(window)*int64(base)/int64(2*max(mean, base)))))
}

// drain begins one, where the window was full: else no queue is ours. Windows of long
// paths take off all of a queue whenever it is too long (excess), and half of one at
// once, afterwards, is more than queues hold.
func (g *congestion) drain(base, mean Time) {
	if g.drains.rounds == 0 && g.wasLimited && base != Never && !g.long() {
		g.window = g.drains.begin(g.window, base, mean)
	}
}

// drained ends a round, and reports whether it was one of a drain. What was lost in it
// counts with the next.
func (g *congestion) drained() bool {
	if g.drains.rounds == 0 {
		return false
	}
	if g.drains.rounds--; g.drains.rounds == 0 {
		g.window = g.drains.resume
	}
	g.least, g.limited = Never, true
	return true
}

// endDrain ends a drain early.
func (g *congestion) endDrain() {
	if g.drains.rounds > 0 {
		g.window, g.drains.rounds = g.drains.resume, 0
	}
}
