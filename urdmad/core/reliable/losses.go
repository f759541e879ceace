package reliable

// losses distinguishes loss by congestion from the path's random loss. A queue that overflows is at its
// longest, so it loses segments while round trips are long. A path that loses as much while round trips are
// short loses at random, and a long round trip at a loss is no evidence there (the idea of TCP Veno, Fu and
// Liew 2003).
//
// A round trip is short if its queue is within congestion control's target and it is below the mean: for a
// connection that arrived at a full queue, the least round trip includes most of that queue, and where the
// ends' own turns take longer than target, no round trip is much shorter than the others. The mean is that of
// many round trips, because the mean of a few follows the queue. A segment is found lost after the round trip
// of those around it was measured, so two round trips in succession must be short.
type losses struct {
	queued bool // the last two measured round trips were not both short
	long   bool // the last one was not short
	mean   Time // of about the last meanTrips measured round trips
	acks   [2]int
	lost   [2]int // lost segments, indexed by queued
}

const (
	// enoughAcks acknowledgements without a queue are enough to know the path's own loss.
	enoughAcks = 512
	// memoryAcks is the number of acknowledgements after which both counts of an index are halved.
	memoryAcks = 16384
	meanTrips  = 64
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

// sample processes a measured round trip; base is the least round trip, target the tolerated queue.
func (l *losses) sample(rtt, base, target Time) {
	if l.mean == 0 {
		l.mean = rtt
	}
	l.mean += (rtt - l.mean) / meanTrips
	long := rtt-base > min(target, l.mean-base)
	l.queued, l.long = long || l.long, long
}

func (l *losses) countLost() { l.lost[l.index()]++ }

// random reports whether the loss rate without a queue is at least half of that with one.
func (l *losses) random() bool {
	return l.acks[0] >= enoughAcks && 2*l.lost[0]*l.acks[1] >= l.lost[1]*l.acks[0] && l.lost[0] > 0
}
