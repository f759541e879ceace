package reliabletest

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"

	"urdma/urdmad/core/reliable"
)

// World is two peers, the links between them, and the time.
type World struct {
	Peers [2]*Peer
	Links [2]*Link // Links[i] leads away from Peers[i]
	Hops  [2]*Link // what follows behind Links[i], such as a switch's queue; nil: the other peer
	Now   reliable.Time

	// Trace, if set, takes a line for each event.
	Trace func(line string)

	// TurnAfter is the time between a packet's arrival and the peer's turn: the longer it is, the more packets
	// the peer finds at once.
	TurnAfter reliable.Time

	// TurnTakes and PacketTakes are how long a turn keeps a peer busy, and each packet that it receives or
	// sends in the turn. The packets leave at once.
	TurnTakes, PacketTakes reliable.Time

	Events    int // handled so far
	MaxEvents int // Run fails after so many; 0 is no limit

	rng     *rand.Rand
	events  eventHeap
	serial  uint64
	wake    [2]reliable.Time // earliest turn scheduled
	paused  [2]reliable.Time // asleep until then
	inbox   [2][]*Packet
	free    []*Packet
	failure error
}

type event struct {
	at     reliable.Time
	serial uint64 // order among equals
	peer   int
	pkt    *Packet // arrives; nil for a turn
	do     func()  // any other event
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// turnTime is the duration of a turn.
const turnTime = 100

// NewWorld connects a and b by links. All random decisions are drawn from rng.
func NewWorld(rng *rand.Rand, a, b *Peer, ab, ba *Link) *World {
	w := &World{Peers: [2]*Peer{a, b}, Links: [2]*Link{ab, ba}, rng: rng}
	for i := range w.Peers {
		w.wake[i] = reliable.Never
		w.Peers[i].Emit = func(pkt *Packet) { w.transmit(i, pkt) }
	}
	return w
}

// EnableTrace sets Trace, and the peers' Log.
func (w *World) EnableTrace(trace func(line string)) {
	w.Trace = trace
	for _, p := range w.Peers {
		p.Log = func(format string, args ...any) {
			w.trace("%s: %s", p.Name, fmt.Sprintf(format, args...))
		}
	}
}

func (w *World) trace(format string, args ...any) {
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%12.3fµs ", float64(w.Now)/1000) + fmt.Sprintf(format, args...))
	}
}

func (w *World) push(e event) {
	w.serial++
	e.serial = w.serial
	heap.Push(&w.events, e)
}

// At schedules do at time at.
func (w *World) At(at reliable.Time, do func()) { w.push(event{at: at, do: do}) }

// Pause suspends peer i for d: it receives nothing and sends nothing.
func (w *World) Pause(i int, d reliable.Time) {
	w.trace("%s: asleep for %dµs", w.Peers[i].Name, d/reliable.Microsecond)
	w.paused[i] = max(w.paused[i], w.Now+d)
	w.Wake(i, w.paused[i])
}

// Wake schedules a turn of peer i at time at, unless one is scheduled earlier.
func (w *World) Wake(i int, at reliable.Time) {
	at = max(at, w.Now)
	if at < w.wake[i] {
		w.wake[i] = at
		w.push(event{at: at, peer: i})
	}
}

// transmit sends a packet of peer i.
func (w *World) transmit(i int, pkt *Packet) {
	w.enter(i, w.Links[i], pkt, func(at reliable.Time, p *Packet) {
		if w.Hops[i] == nil {
			w.push(event{at: at, peer: 1 - i, pkt: p})
			return
		}
		w.At(at, func() {
			w.enter(i, w.Hops[i], p, func(at reliable.Time, p *Packet) { w.push(event{at: at, peer: 1 - i, pkt: p}) })
			w.free = append(w.free, p)
		})
	})
}

// enter lets a packet of peer i pass a link, and calls then for each copy that comes out, with the time when it does.
func (w *World) enter(i int, l *Link, pkt *Packet, then func(at reliable.Time, p *Packet)) {
	at, n := l.arrivals(w.Now, w.rng, pkt)
	if w.Trace != nil {
		w.trace("%s> %v%s", w.Peers[i].Name, pkt, [3]string{" LOST", "", " TWICE"}[n])
	}
	for _, t := range at[:n] {
		p := w.packet()
		p.copyFrom(pkt)
		if w.rng.Float64() < l.Corrupt {
			w.corrupt(p)
		}
		then(t, p)
	}
}

func (w *World) packet() *Packet {
	if n := len(w.free); n > 0 {
		p := w.free[n-1]
		w.free = w.free[:n-1]
		return p
	}
	return new(Packet)
}

func (w *World) corrupt(p *Packet) {
	bit := uint32(1) << w.rng.IntN(32)
	switch w.rng.IntN(4) {
	case 0:
		p.PSN = p.PSN.Add(bit)
	case 1:
		p.Ack = p.Ack.Add(bit)
	case 2:
		p.Credits ^= 1 << w.rng.IntN(12)
	case 3:
		if len(p.Payload) > 0 {
			p.Payload[w.rng.IntN(len(p.Payload))] ^= byte(1) << w.rng.IntN(8)
		} else {
			p.AR = !p.AR
		}
	}
}

// Limits of Run.
var (
	ErrTooLong = errors.New("not done within the time allowed")
	ErrTooMany = errors.New("not done within the number of events allowed")
	ErrStuck   = errors.New("nothing will ever happen again, and it is not done")
)

// Run lets time pass until done reports true, a peer fails, or limit.
func (w *World) Run(limit reliable.Time, done func() bool) error {
	for !done() {
		if w.failure != nil {
			return w.failure
		}
		if len(w.events) == 0 {
			return ErrStuck
		}
		e := heap.Pop(&w.events).(event)
		if e.at > limit {
			return ErrTooLong
		}
		w.Now = e.at
		if w.Events++; w.Events == w.MaxEvents {
			return ErrTooMany
		}
		w.handle(e)
	}
	return w.failure
}

func (w *World) handle(e event) {
	switch {
	case e.do != nil:
		e.do()
	case e.pkt != nil:
		w.inbox[e.peer] = append(w.inbox[e.peer], e.pkt)
		w.Wake(e.peer, max(w.Now+w.TurnAfter, w.paused[e.peer]))
	case e.at == w.wake[e.peer]:
		w.wake[e.peer] = reliable.Never
		w.turn(e.peer)
	}
}

// turn lets peer i receive its packets, and take its turn.
func (w *World) turn(i int) {
	if w.Now < w.paused[i] {
		w.Wake(i, w.paused[i])
		return
	}
	p := w.Peers[i]
	packets := len(w.inbox[i])
	sent := w.Links[i].Packets
	for _, pkt := range w.inbox[i] {
		w.trace("%s< %v", p.Name, pkt)
		if err := p.Receive(w.Now, pkt); err != nil {
			w.fail(err)
		}
		w.free = append(w.free, pkt)
	}
	w.inbox[i] = w.inbox[i][:0]
	if err := p.Turn(w.Now); err != nil {
		w.fail(err)
	}
	packets += int(w.Links[i].Packets - sent)
	if packets > 0 {
		w.paused[i] = max(w.paused[i], w.Now+w.TurnTakes+reliable.Time(packets)*w.PacketTakes)
	}
	if d := p.Conn.Deadline(); d != reliable.Never {
		w.Wake(i, max(d, w.Now+turnTime))
	}
}

func (w *World) fail(err error) {
	if w.failure == nil {
		w.failure = err
	}
}
