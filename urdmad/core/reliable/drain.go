package reliable

// drain lets the queue of a path run empty for a moment, so that the path's own round trip can be measured.
// Delay is measured relative to the least recent round trip. A stream that always keeps target in the queue
// would take more and more of that queue for the path, each time the least round trip expires. A stream
// that arrives at a queue kept by others would never see the path's own round trip at all (as BBR's
// ProbeRTT, Cardwell et al. 2016).
//
// It takes two rounds: in the first one the segments sent before arrive, in the second one those that met
// the shorter queue. Connections of one machine drain at the same time, because rtt renews by the clock:
// otherwise each would measure the others' queues.
type drain struct {
	rounds int // remaining rounds
	resume int // the window to restore afterwards
}

const drainRounds = 2

// begin returns the window for draining: half of what the path holds without a queue.
func (d *drain) begin(window int, base, mean Time) int {
	d.rounds, d.resume = drainRounds, window
	return min(window, max(minCwnd, int(int64(window)*int64(base)/int64(2*max(mean, base)))))
}

// drain begins a drain if the window was full. If it was not, packets of other senders make up the queue. On a
// long path there is no drain: excess already takes the whole queue out of the window if it is too long, and
// restoring a large window at once would overflow buffers on the path.
func (g *congestion) drain(base, mean Time) {
	if g.drains.rounds == 0 && g.wasLimited && base != Never && !g.long() {
		g.window = g.drains.begin(g.window, base, mean)
	}
}

// drained ends a round, and reports whether it was part of a drain. Losses of such a round count in the
// next.
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
