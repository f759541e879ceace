package impair

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/inject"
	"urdma/test/linked"
	"urdma/urdmad/core/clock"
)

// line is two ports, the first with our queue, on a wire without faults of its own.
type line struct {
	t     *testing.T
	net   *linked.Network
	clock clock.Clock
	q     *Queue
	far   *linked.Port
}

func newLine(t *testing.T) *line {
	l := &line{t: t, net: linked.New(1)}
	a, b := l.net.Pair(linked.Options{}, linked.Options{}, linked.Path{}, linked.Path{})
	l.q, l.far = New(a.Queue(0), a.Info(), &l.clock), b
	return l
}

const frameLen = 98 // an IP packet of 84 bytes

// send sends numbered frames by a queue.
func (l *line) send(q port.Queue, from, n int) {
	l.t.Helper()
	for i := range n {
		var p [1]port.Packet
		if q.Alloc(p[:]) != 1 {
			l.t.Fatal("no buffer")
		}
		b := p[0].Data[:frameLen]
		clear(b)
		copy(b[12:], []byte{8, 0, 0x45})
		b[22] = 64
		copy(b[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
		binary.BigEndian.PutUint32(b[40:], uint32(from+i))
		p[0].Data = b
		if q.Tx(p[:]) != 1 {
			l.t.Fatal("Tx took nothing")
		}
	}
	q.Flush()
}

// pass lets the time pass until t.
func (l *line) pass(t time.Duration) {
	l.clock.Now = clock.Time(t)
	l.net.Advance(int64(t))
	l.clock.Run(l.clock.Now)
	l.net.Advance(int64(t))
}

// numbers receives frames and returns their numbers; those of damaged ones are negative.
func (l *line) numbers(q port.Queue) (all []int) {
	for {
		p := make([]port.Packet, 16)
		n := q.Rx(p)
		if n == 0 {
			return all
		}
		for i := range p[:n] {
			number := int(binary.BigEndian.Uint32(p[i].Data[40:]))
			if p[i].Data[22] != 64 {
				number = -number
			}
			all = append(all, number)
		}
		q.Free(p[:n])
	}
}

// run sends frames in one direction, at once, and returns the frames that arrived at each time.
func run(t *testing.T, w inject.Wire, seed uint64, out bool, n int, times ...time.Duration) (arrived [][]int,
	s *Stage) {
	l := newLine(t)
	s = NewStage(w, seed)
	l.q.Stages = []*Stage{s}
	from, to := port.Queue(l.q), l.far.Queue(0)
	if !out {
		from, to = to, from
	}
	l.send(from, 1, n)
	l.pass(0)
	now := l.numbers(to) // the fate of an arriving frame is decided when it is received
	for _, at := range times {
		l.pass(at)
		arrived = append(arrived, append(now, l.numbers(to)...))
		now = nil
	}
	l.q.Stages = nil
	if !l.q.Idle() {
		t.Errorf("%+v: %d and %d packets wait, %d are lent", w, len(l.q.in), len(l.q.out), l.q.lent)
	}
	return arrived, s
}

func both(w inject.Wire) inject.Wire { w.In, w.Out = true, true; return w }

// TestFates: the frames that arrive, and when, in either direction.
func TestFates(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		wire  inject.Wire
		times []time.Duration
		want  string
	}{
		{"nothing", both(inject.Wire{}), []time.Duration{0}, "[[1 2 3]]"},
		{"other way", inject.Wire{Loss: 1}, []time.Duration{0}, "[[1 2 3]]"},
		{"another peer", both(inject.Wire{Loss: 1, Peer: netip.MustParseAddr("10.0.0.9")}), []time.Duration{0}, "[[1 2 3]]"},
		{"loss", both(inject.Wire{Loss: 1}), []time.Duration{0, ms}, "[[] []]"},
		{"partition", both(inject.Wire{Cut: true}), []time.Duration{0, ms}, "[[] []]"},
		{"MTU", both(inject.Wire{MTU: frameLen - port.EtherHeaderLen - 1}), []time.Duration{0, ms}, "[[] []]"},
		{"MTU that is enough", both(inject.Wire{MTU: frameLen - port.EtherHeaderLen}), []time.Duration{0}, "[[1 2 3]]"},
		{"duplicates", both(inject.Wire{Duplicate: 1}), []time.Duration{0}, "[[1 1 2 2 3 3]]"},
		{"corruption", both(inject.Wire{Corrupt: 1}), []time.Duration{0}, "[[-1 -2 -3]]"},
		{"delay", both(inject.Wire{Delay: 2 * ms}), []time.Duration{ms, 2 * ms}, "[[] [1 2 3]]"},
		{"reordering", both(inject.Wire{Reorder: 1, Late: 2 * ms}), []time.Duration{ms, 2 * ms}, "[[] [1 2 3]]"},
		// one per millisecond
		{"rate", both(inject.Wire{Rate: frameLen * 8 * 1000}), []time.Duration{0, ms, 2 * ms, 3 * ms}, "[[] [1] [2] [3]]"},
		{"jitter keeps the order", both(inject.Wire{Jitter: ms}), []time.Duration{ms}, "[[1 2 3]]"},
	} {
		for _, out := range []bool{true, false} {
			if got, _ := run(t, c.wire, 1, out, 3, c.times...); fmt.Sprint(got) != c.want {
				t.Errorf("%s, out %v: %v, expected %s", c.name, out, got, c.want)
			}
		}
	}
	if got, s := run(t, both(inject.Wire{Loss: 1, Peer: netip.MustParseAddr("10.0.0.2")}), 1, true, 3,
		0); fmt.Sprint(got) != "[[]]" || s.Hits != 3 {
		t.Errorf("the peer's: %v, %d hits", got, s.Hits)
	}
}

// TestSeed: the same seed treats the same packets in the same way, another seed does not, and losses occur in bursts.
func TestSeed(t *testing.T) {
	w := both(inject.Wire{Loss: 0.02, Burst: 5, Duplicate: 0.05, Reorder: 0.1})
	arrive := func(seed uint64) []int {
		got, s := run(t, w, seed, true, 1000, 0, time.Second)
		if s.Seen != 1000 || s.Hits == 0 || s.Hits == 1000 {
			t.Errorf("%d seen, %d hits", s.Seen, s.Hits)
		}
		return slices.Concat(got...)
	}
	a, b, c := arrive(1), arrive(1), arrive(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("seed 1 differs from itself, or seed 2 does not differ")
	}
	have := map[int]bool{}
	for _, n := range a {
		have[n] = true
	}
	lost := 0
	for n := 1; n <= 1000; n++ {
		if !have[n] {
			lost++
		}
	}
	if lost == 0 || lost%5 != 0 && have[1000] {
		t.Errorf("%d were lost, expected bursts of 5", lost)
	}
}
