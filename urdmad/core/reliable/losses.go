package reliable

// losses distinguishes loss by congestion from the path's random loss. A queue that overflows is at its
// longest, so it loses segments while round trips are long. A path that loses as much while round trips are
// short loses at random, and a long round trip at a loss is no evidence there (the idea of TCP Veno, Fu and
// Liew 2003).
//
// A round trip is short if its queue is within congestion control's target and it is nearer to the least
// than to the mean round trip: for a connection that arrived at a full queue, the least round trip includes
// most of that queue.
type losses struct {
	queued bool // the last measured round trip was not short
	acks   [2]int
	lost   [2]int // lost segments, indexed by queued
}

const (
	// enoughAcks acknowledgements without a queue are enough to know the path's own loss.
	enoughAcks = 1024
	// memoryAcks is the number of acknowledgements after which both counts of an index are halved.
	memoryAcks = 16384
)

// index returns the index for segments counted now.
func (l *losses) index() int {
	if l.queued {
		return 1
	}
	return 0
}

func (l *losses) acked(n int) {
	i := l.index()
	if l.acks[i] += n; l.acks[i] > memoryAcks {
		l.acks[i] /= 2
		l.lost[i] /= 2
	}
}

// sample processes a measured round trip; base is the least and mean the average round trip, target the
// tolerated queue.
func (l *losses) sample(rtt, base, mean, target Time) {
	l.queued = rtt-base > min(target, (mean-base)/2)
}

func (l *losses) countLost() { l.lost[l.index()]++ }

// random reports whether the loss rate without a queue is at least half of that with one.
func (l *losses) random() bool {
	return l.acks[0] >= enoughAcks && 2*l.lost[0]*l.acks[1] >= l.lost[1]*l.acks[0] && l.lost[0] > 0
}
