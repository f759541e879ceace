package reliabletest

import (
	"math/rand/v2"

	"urdma/urdmad/core/reliable"
)

// Faults are the probabilities of a network's faults, per packet.
type Faults struct {
	Loss    float64
	Dup     float64
	Corrupt float64 // one bit flips
	Reorder float64 // delayed by up to ReorderBy more
	Spike   float64 // the probability that all packets of the next SpikeBy are delayed by SpikeBy

	ReorderBy reliable.Time
	SpikeBy   reliable.Time
}

// Link is one direction of a network: a queue drained at Rate, then Delay.
type Link struct {
	Faults
	Rate   float64 // bits per second; 0 is infinite
	Size   int     // bytes a segment takes on the wire; an acknowledgement takes 64
	Delay  reliable.Time
	Jitter reliable.Time // evenly distributed, without overtaking
	Queue  int           // bytes the queue holds; 0 is unbounded

	busy     reliable.Time // the last packet has left the queue
	spikeEnd reliable.Time
	last     reliable.Time // arrival of the last packet in order

	Packets, Dropped, Overflowed uint64
}

// arrivals returns when the copies of a packet that enters at now arrive:
// none, one or two of them.
func (l *Link) arrivals(now reliable.Time, rng *rand.Rand, pkt *Packet) (at [2]reliable.Time, n int) {
	l.Packets++
	left, ok := l.enqueue(now, pkt)
	if !ok {
		l.Overflowed++
		return at, 0
	}
	if rng.Float64() < l.Loss {
		l.Dropped++
		return at, 0
	}
	at[0] = l.travel(left, rng)
	if rng.Float64() < l.Dup {
		at[1] = l.travel(left, rng)
		return at, 2
	}
	return at, 1
}

// enqueue returns when the packet has left the queue.
func (l *Link) enqueue(now reliable.Time, pkt *Packet) (reliable.Time, bool) {
	l.busy = max(l.busy, now)
	if l.Rate == 0 {
		return now, true
	}
	size := 64
	if len(pkt.Payload) > 0 {
		size = l.Size
	}
	backlog := float64(l.busy-now) * l.Rate / 8e9
	if l.Queue > 0 && backlog+float64(size) > float64(l.Queue) {
		return 0, false
	}
	l.busy += reliable.Time(float64(size) * 8e9 / l.Rate)
	return l.busy, true
}

// travel returns when a packet that left the queue at left arrives.
func (l *Link) travel(left reliable.Time, rng *rand.Rand) reliable.Time {
	at := left + l.Delay
	if l.Jitter > 0 {
		at += reliable.Time(rng.Int64N(int64(l.Jitter)))
	}
	if rng.Float64() < l.Spike {
		l.spikeEnd = left + l.SpikeBy
	}
	if left < l.spikeEnd {
		at = l.spikeEnd + l.Delay
	}
	if l.ReorderBy > 0 && rng.Float64() < l.Reorder {
		return at + reliable.Time(rng.Int64N(int64(l.ReorderBy)))
	}
	l.last = max(l.last, at)
	return l.last
}
