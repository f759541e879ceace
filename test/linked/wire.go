package linked

import "time"

// Path describes the faults of one direction of a pair. The zero Path delivers every frame at once and unchanged.
// Probabilities are 0 to 1, drawn for each frame from the network's generator.
type Path struct {
	Loss      float64
	Duplicate float64 // a second copy follows, with its own delay
	Corrupt   float64 // one bit somewhere in the frame is flipped
	Reorder   float64 // the frame is delayed by ReorderBy, so that later ones overtake it

	Delay     time.Duration // from the end of transmission to arrival
	Jitter    time.Duration // up to this much more, evenly; order is kept
	ReorderBy time.Duration // 0 means 10 µs
	Rate      int64         // bits per second; 0: as fast as the sender

	// Drop, if set, is called for each frame (n counts from 0) before random faults, and drops the frame if it
	// returns true. It must not call the network.
	Drop func(n uint64, frame []byte) bool
}

// wire is one direction of a pair.
type wire struct {
	net      *Network
	path     Path
	from, to *Port
	up       bool
	sent     uint64 // frames offered to Path.Drop
	busy     int64  // when the transmitter is free
	last     int64  // latest in-order arrival so far
}

// etherOverhead is preamble, frame check sequence and gap, in bytes.
const etherOverhead = 24

// transmit puts one frame on the wire and calls done when the sender's buffer is no longer needed. The caller holds
// the network's lock.
func (w *wire) transmit(frame []byte, done func()) {
	n := w.net
	end := n.now
	if w.path.Rate > 0 {
		bits := int64(len(frame)+etherOverhead) * 8
		end = max(n.now, w.busy) + bits*int64(time.Second)/w.path.Rate
		w.busy = end
	}
	w.send(frame, end)
	if end <= n.now {
		done()
		return
	}
	n.at(end, done)
}

// send decides the frame's fate and sends a copy, because the sender reuses its buffer.
func (w *wire) send(frame []byte, end int64) {
	n, p := w.net, &w.path
	i := w.sent
	w.sent++
	n.report(w.from.info.Name, Sent, frame)
	if p.Drop != nil && p.Drop(i, frame) || w.chance(p.Loss) {
		n.report(w.from.info.Name, Lost, frame)
		return
	}
	w.deliver(frame, end)
	if w.chance(p.Duplicate) {
		n.report(w.from.info.Name, Duplicated, frame)
		w.deliver(frame, end)
	}
}

func (w *wire) deliver(frame []byte, end int64) {
	n, p := w.net, &w.path
	data := append([]byte(nil), frame...)
	due := end + int64(p.Delay)
	if p.Jitter > 0 {
		due += n.rng.Int64N(int64(p.Jitter) + 1)
	}
	if w.chance(p.Reorder) {
		by := p.ReorderBy
		if by <= 0 {
			by = 10 * time.Microsecond
		}
		due += int64(by)
		n.report(w.from.info.Name, Reordered, data)
	} else {
		due = max(due, w.last)
		w.last = due
	}
	if len(data) > 0 && w.chance(p.Corrupt) {
		bit := n.rng.IntN(len(data) * 8)
		data[bit/8] ^= 1 << (bit % 8)
		n.report(w.from.info.Name, Corrupted, data)
	}
	if due <= n.now {
		w.arrive(data)
		return
	}
	n.at(due, func() { w.arrive(data) })
}

func (w *wire) arrive(data []byte) {
	if !w.up || w.to.closed {
		w.net.report(w.from.info.Name, Lost, data)
		return
	}
	w.net.report(w.from.info.Name, w.to.queue.receive(data), data)
}

// chance draws a number only if the probability is not 0, so that enabling one fault hardly changes the draws for
// others.
func (w *wire) chance(p float64) bool {
	return p > 0 && w.net.rng.Float64() < p
}
