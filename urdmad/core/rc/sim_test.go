package rc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/wire/roce"
)

// link is one direction of a network with a virtual clock.
type link struct {
	rand                  *rand.Rand
	loss, double, disturb float64
	flying                []flight
}

type flight struct {
	at clock.Time
	packet
}

// packet is a request, or an answer of any kind.
type packet struct {
	arrival Arrival
	message int // Send, Write: its number, and this part of it
	offset  uint32
	add     uint64

	answers  bool
	aeth     roce.AETH
	from     uint64 // of a response: the address of its first byte
	original uint64
}

func (l *link) send(now clock.Time, p packet) {
	for n := 1; n > 0; n-- {
		if l.rand.Float64() < l.loss {
			continue
		}
		at := now + 10*clock.Microsecond
		if l.rand.Float64() < l.disturb {
			at += clock.Time(l.rand.IntN(int(100 * clock.Microsecond)))
		}
		l.flying = append(l.flying, flight{at, p})
		if l.rand.Float64() < l.double {
			n++
		}
	}
}

// next returns the next packet that arrives by a time, if there is one.
func (l *link) next(by clock.Time) (p packet, ok bool) {
	first := -1
	for i, f := range l.flying {
		if f.at <= by && (first < 0 || f.at < l.flying[first].at) {
			first = i
		}
	}
	if first < 0 {
		return p, false
	}
	p = l.flying[first].packet
	l.flying = append(l.flying[:first], l.flying[first+1:]...)
	return p, true
}

// work is a message of one end.
type work struct {
	opcode roce.Opcode // SendOnly, WriteOnly, ReadRequest or FetchAdd
	length uint32
	va     uint64
	add    uint64
	got    uint32 // bytes of the answer
	end    uint64
	done   bool
	found  uint64
}

// end is one end of a connection.
type end struct {
	t     *testing.T
	name  string
	rand  *rand.Rand
	mtu   uint32
	req   Requester
	resp  Responder
	stats Stats
	out   *link

	todo     []*work // some of them begun
	begun    int
	failed   Failure
	notReady float64 // chance that a message finds no receive

	peer     *end
	arrived  int    // messages received from the peer, in order
	part     uint32 // bytes received of the next one
	counter  uint64 // the target of the peer's atomics
	original map[int]uint64
	from     map[int]uint64 // by slot: where a Read's answer begins
	served   int
}

func (e *end) fatal(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf("%s: %s", e.name, fmt.Sprintf(format, args...))
}

func kindOf(o roce.Opcode) Kind {
	switch o {
	case roce.ReadRequest:
		return Read
	case roce.FetchAdd:
		return Atomic
	}
	return Data
}

// opcodeOf returns the opcode of a packet of a Send or a Write.
func opcodeOf(message roce.Opcode, first, last bool) roce.Opcode {
	base := message - roce.SendOnly + roce.SendFirst
	switch {
	case first && last:
		return message
	case first:
		return base
	case last:
		return base + 2
	}
	return base + 1
}

// turn sends all packets that may be sent.
func (e *end) turn(now clock.Time) {
	if h := e.req.Tick(now); h.Failure != None {
		e.failed = h.Failure
		return
	}
	for n := 0; n < 16; n++ {
		if p, ok := e.resp.NextAnswer(); ok {
			a := packet{answers: true, arrival: Arrival{Opcode: p.Opcode, PSN: p.PSN, Size: p.Length},
				aeth: roce.AETH{Syndrome: roce.NoCredits, MSN: p.MSN},
				from: e.from[p.Slot] + uint64(p.Offset), original: e.original[p.Slot]}
			e.out.send(now, a)
			e.resp.Answered(&p)
			continue
		}
		if !e.req.Waiting() {
			if e.begun == len(e.todo) {
				break
			}
			w := e.todo[e.begun]
			w.end = e.req.Begin(uint32(e.begun), kindOf(w.opcode), w.length)
			e.begun++
		}
		p, ok := e.req.Next(now)
		if !ok {
			break
		}
		w := e.todo[p.Token]
		a := packet{message: int(p.Token), offset: p.Offset, add: w.add,
			arrival: Arrival{Opcode: w.opcode, PSN: p.PSN, VA: w.va + uint64(p.Offset), Length: p.Length, RKey: 7,
				AckReq: p.AckReq}}
		if p.Kind == Data {
			a.arrival.Opcode, a.arrival.Size, a.arrival.Length = opcodeOf(w.opcode, p.First, p.Last), p.Length, w.length
		}
		e.out.send(now, a)
		e.req.Sent(now, &p)
	}
	if psn, aeth, ok := e.resp.Reply(^uint64(0)); ok {
		e.out.send(now, packet{answers: true, arrival: Arrival{Opcode: roce.Acknowledge, PSN: psn}, aeth: aeth})
		e.resp.Replied(psn)
	}
}

// take handles an arriving packet.
func (e *end) take(now clock.Time, p *packet) {
	if p.answers {
		e.answered(now, p)
		return
	}
	a := &p.arrival
	switch do, slot := e.resp.Judge(a); do {
	case Deliver:
		e.deliver(p, slot)
	case Answer:
		if e.rand.Float64() < e.notReady { // treated as lost
			return
		}
		if a.Opcode == roce.ReadRequest {
			e.from[slot] = a.VA
		}
		e.resp.Repeated(a, slot)
	}
}

func (e *end) deliver(p *packet, slot int) {
	a := &p.arrival
	t := a.Opcode.Traits()
	switch {
	case a.Opcode == roce.ReadRequest:
		e.from[slot] = a.VA
		e.served++
	case a.Opcode == roce.FetchAdd:
		e.original[slot] = e.counter
		e.counter += p.add
	default:
		if t.Is(roce.Send|roce.First) && e.rand.Float64() < e.notReady {
			e.resp.NotReady(1)
			return
		}
		for e.arrived < len(e.peer.todo) && kindOf(e.peer.todo[e.arrived].opcode) != Data {
			e.arrived++
		}
		if p.message != e.arrived || p.offset != e.part {
			e.fatal("message %d at %d arrives, %d at %d is expected", p.message, p.offset, e.arrived, e.part)
		}
		e.part += a.Size
		if t.Is(roce.Last) {
			if w := e.peer.todo[p.message]; e.part != w.length {
				e.fatal("message %d ends with %d bytes of %d", p.message, e.part, w.length)
			}
			e.arrived, e.part = e.arrived+1, 0
		}
	}
	e.resp.Delivered(a)
}

func (e *end) answered(now clock.Time, p *packet) {
	a := &p.arrival
	var h Heard
	if a.Opcode == roce.Acknowledge {
		h = e.req.Acknowledgement(now, a.PSN, p.aeth.Syndrome)
	} else {
		h = e.req.Response(now, a.PSN, a.Size)
	}
	if h.Failure != None {
		e.failed = h.Failure
		return
	}
	if h.Take {
		w := e.todo[h.Token]
		if w.opcode == roce.FetchAdd {
			w.found, w.done = p.original, true
		} else {
			if h.Offset != w.got || p.from != w.va+uint64(h.Offset) {
				e.fatal("Read %d: bytes from %#x are placed at %d, after %d; it began at %#x", h.Token, p.from, h.Offset, w.got,
					w.va)
			}
			w.got += a.Size
			w.done = h.Done
		}
	}
	for i := range e.todo[:e.begun] {
		if w := e.todo[i]; kindOf(w.opcode) == Data && w.end <= e.req.Acked() {
			w.done = true
		}
	}
}

// trial has the parameters that a simulation draws from its seed.
type trial struct {
	mtu                             uint32
	psn                             [2]roce.PSN
	messages                        int
	loss, double, disturb, notReady float64
	reads                           int
}

func draw(r *rand.Rand) trial {
	pick := func(of ...float64) float64 { return of[r.IntN(len(of))] }
	v := trial{mtu: 256 << r.IntN(5), messages: 5 + r.IntN(40), reads: 1 + r.IntN(5), loss: pick(0, 0, 0.01, 0.05, 0.2),
		double: pick(0, 0.02, 0.2), disturb: pick(0, 0.02, 0.3), notReady: pick(0, 0, 0.1)}
	for i := range v.psn {
		v.psn[i] = roce.PSN(1<<24 - r.IntN(300) - 1)
		if r.IntN(3) == 0 {
			v.psn[i] = roce.PSN(r.IntN(1 << 24))
		}
	}
	return v
}

func (v *trial) work(r *rand.Rand) (list []*work) {
	for range v.messages {
		w := &work{opcode: []roce.Opcode{roce.SendOnly, roce.WriteOnly, roce.ReadRequest, roce.FetchAdd}[r.IntN(4)],
			va:     r.Uint64() >> 8,
			length: uint32(r.IntN(3 * int(v.mtu)))}
		if r.IntN(6) == 0 {
			w.length = uint32(r.IntN(100 * int(v.mtu)))
		}
		if w.opcode == roce.FetchAdd {
			w.length, w.add = 8, 1+r.Uint64N(100)
		}
		list = append(list, w)
	}
	return list
}

// simulate lets two ends exchange messages over a bad network: each must arrive once, in order and complete.
func simulate(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	v := draw(r)
	var links [2]*link
	var ends [2]*end
	for i := range links {
		links[i] = &link{rand: r, loss: v.loss, double: v.double, disturb: v.disturb}
	}
	for i := range ends {
		e := &end{t: t, name: fmt.Sprintf("seed %d (%+v), end %d", seed, v, i), rand: r, mtu: v.mtu, out: links[i],
			notReady: v.notReady,
			original: map[int]uint64{}, from: map[int]uint64{}, todo: v.work(r)}
		e.req.Init(Config{PSN: v.psn[i], MTU: v.mtu, Reads: v.reads, Timeout: 500 * clock.Millisecond, Retries: NoLimit,
			RNRRetries: NoLimit}, &e.stats)
		e.resp.Init(v.psn[1-i], v.mtu, v.reads, &e.stats)
		ends[i] = e
	}
	ends[0].peer, ends[1].peer = ends[1], ends[0]
	done := func(e *end) bool { return e.begun == len(e.todo) && e.req.Idle() }
	now := clock.Time(0)
	for step := 0; !done(ends[0]) || !done(ends[1]); step++ {
		if step > 2_000_000 {
			ends[0].fatal("not done at %d ns: %+v / %+v", now, ends[0].stats, ends[1].stats)
		}
		for i, e := range ends {
			for p, ok := links[1-i].next(now); ok; p, ok = links[1-i].next(now) {
				e.take(now, &p)
			}
			e.turn(now)
			if e.failed != None {
				e.fatal("the connection ends with failure %d", e.failed)
			}
		}
		now += 5 * clock.Microsecond
		if len(links[0].flying)+len(links[1].flying) == 0 {
			now = max(now, min(ends[0].req.Deadline(), ends[1].req.Deadline(), now+clock.Second))
		}
	}
	for _, e := range ends {
		check(e)
	}
}

func check(e *end) {
	var sum uint64
	for i, w := range e.todo {
		if !w.done || w.opcode == roce.ReadRequest && w.got != w.length {
			e.fatal("message %d is not done: %+v", i, w)
		}
		if w.opcode == roce.FetchAdd {
			if w.found != sum {
				e.fatal("atomic %d has found %d, expected %d", i, w.found, sum)
			}
			sum += w.add
		}
	}
	if e.peer.counter != sum {
		e.fatal("atomics came to %d, expected %d", e.peer.counter, sum)
	}
}
