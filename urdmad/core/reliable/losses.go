package reliable

// losses tells loss that congestion causes from loss that the path has anyway. A
// queue that overflows is longest when it does, so what it loses, it loses while
// the round trips around are long; a path that loses as much while they are short
// loses at random, and there a long round trip says no more than without loss
// (the idea of TCP Veno's, Fu and Liew 2003).
//
// Short is within the target of congestion control and nearer to the least than to
// the mean: one who came to a queue that others keep full has a least with most
// of that queue in it.
type losses struct {
	queued bool // the last round trip measured was not short
	acks   [2]int
	lost   [2]int // of those, by queued
}

const (
	// enoughAcks without a queue say how much the path itself loses.
	enoughAcks = 1024
	// memoryAcks are what is remembered of each.
	memoryAcks = 16384
)

// index is where segments of the present moment count.
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

// sample takes a measured round trip, what round trips are at least and on average,
// and the queue that is tolerated.
func (l *losses) sample(rtt, base, mean, target Time) {
	l.queued = rtt-base > min(target, (mean-base)/2)
}

func (l *losses) oneLost() { l.lost[l.index()]++ }

// random reports whether segments are lost without a queue at least half as often
// as with one.
func (l *losses) random() bool {
	return l.acks[0] >= enoughAcks && 2*l.lost[0]*l.acks[1] >= l.lost[1]*l.acks[0] && l.lost[0] > 0
}
