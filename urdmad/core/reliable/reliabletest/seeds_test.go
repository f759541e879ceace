package reliabletest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// seedRun is one simulated transfer, with all parameters drawn from its seed.
type seedRun struct {
	seed  uint64
	rng   *rand.Rand
	world *World
	want  [2]uint64 // segments to be delivered at each peer
	text  string    // the drawn parameters
}

func newSeedRun(seed uint64, segments int) *seedRun {
	r := &seedRun{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x7552))}
	cfgA, cfgB := r.configs()
	keyA, keyB := r.rng.Uint64(), r.rng.Uint64()
	a, b := NewPeer("a", cfgA, keyA, keyB), NewPeer("b", cfgB, keyB, keyA)
	r.world = NewWorld(r.rng, a, b, r.link(), r.link())
	r.world.MaxEvents = 100_000 + 1000*segments // an endless loop is a failure, too
	r.world.TurnAfter = reliable.Time(r.rng.IntN(3)) * reliable.Microsecond
	r.offer(segments)
	r.disturb()
	r.text = fmt.Sprintf("config a %+v\nconfig b %+v\nlink a %+v\nlink b %+v\nsegments %v",
		cfgA, cfgB, *r.world.Links[0], *r.world.Links[1], r.want)
	return r
}

func (r *seedRun) configs() (a, b reliable.Config) {
	isn := func() wire.PSN {
		if r.rng.IntN(2) == 0 {
			return wire.PSN(0).Add(-uint32(r.rng.IntN(200))) // wraps soon
		}
		return wire.PSN(r.rng.Uint32())
	}
	window := func() int { return 1 << (2 + r.rng.IntN(6)) } // 4..128
	a = reliable.Config{
		LocalISN: isn(), PeerISN: isn(), Window: window(), RecvWindow: window(),
		InitialCwnd: 1 + r.rng.IntN(64),
	}
	a.Batches = a.LocalISN%2 == 0
	if r.rng.IntN(4) == 0 {
		a.KeepAlive = reliable.Second
	}
	b = a
	b.LocalISN, b.PeerISN = a.PeerISN, a.LocalISN
	b.Window, b.RecvWindow = window(), window()
	a.PeerWindow, b.PeerWindow = b.RecvWindow, a.RecvWindow
	return a, b
}

// link draws one direction: a third are without faults.
func (r *seedRun) link() *Link {
	us := reliable.Microsecond
	l := &Link{
		Rate: 1e9 * float64(1+r.rng.IntN(50)), Size: 1500,
		Delay:  us * reliable.Time(1+r.rng.IntN(100)),
		Jitter: us * reliable.Time(r.rng.IntN(20)),
	}
	chance := func(most float64) float64 {
		if r.rng.IntN(3) == 0 {
			return 0
		}
		return r.rng.Float64() * most
	}
	l.Loss, l.Dup, l.Corrupt = chance(0.2), chance(0.05), chance(0.02)
	l.Reorder, l.ReorderBy = chance(0.2), us*reliable.Time(1+r.rng.IntN(400))
	l.Spike, l.SpikeBy = chance(0.005), us*reliable.Time(100+r.rng.IntN(5000))
	if r.rng.IntN(4) == 0 {
		l.Queue = 1500 * (4 + r.rng.IntN(60))
	}
	return l
}

// offer lets the programs post segments: all at once, or in bursts.
func (r *seedRun) offer(segments int) {
	for i, p := range r.world.Peers {
		left := r.rng.IntN(segments + 1)
		r.want[1-i] = uint64(left)
		burst := left
		if r.rng.IntN(2) == 0 {
			burst = 1 + r.rng.IntN(20)
		}
		at := reliable.Time(0)
		for left > 0 {
			n := min(left, burst)
			left -= n
			r.world.At(at, func() {
				p.Queued += n
				r.world.Wake(i, r.world.Now)
			})
			at += reliable.Time(r.rng.IntN(200)) * reliable.Microsecond
		}
		r.world.Wake(i, 0)
	}
}

// disturb schedules pauses of 4 ms and backpressure.
func (r *seedRun) disturb() {
	w := r.world
	for i, p := range w.Peers {
		for range r.rng.IntN(3) {
			w.At(reliable.Time(r.rng.IntN(10_000))*reliable.Microsecond, func() {
				w.Pause(i, 4*reliable.Millisecond)
			})
		}
		for range r.rng.IntN(3) {
			at := reliable.Time(r.rng.IntN(5_000)) * reliable.Microsecond
			n := r.rng.IntN(8)
			w.At(at, func() { p.Conn.SetCredits(n) })
			w.At(at+reliable.Time(r.rng.IntN(20_000))*reliable.Microsecond, func() {
				p.Conn.SetCredits(1 << 12)
				w.Wake(i, w.Now)
			})
		}
	}
}

func (r *seedRun) done() bool {
	for i, p := range r.world.Peers {
		if p.Delivered < r.want[i] || p.Queued > 0 || !p.Conn.Idle() {
			return false
		}
	}
	return true
}

// run returns an error unless everything arrived, was acknowledged, and the counters are plausible.
func (r *seedRun) run() error {
	if err := r.world.Run(60*reliable.Second, r.done); err != nil {
		return err
	}
	for i, p := range r.world.Peers {
		s := p.Conn.Stats()
		if s.Delivered != r.want[i] || s.Sent != r.want[1-i] {
			return fmt.Errorf("%s: sent %d, delivered %d, want %d and %d", p.Name, s.Sent, s.Delivered, r.want[1-i], r.want[i])
		}
		if s.InFlight != 0 || s.Lost != 0 || s.Outstanding != 0 || s.Refused != 0 {
			return fmt.Errorf("%s: idle with %+v", p.Name, s)
		}
	}
	return nil
}

// lastLines keeps the end of a trace.
type lastLines struct {
	lines []string
	n     int
}

func (l *lastLines) add(line string) {
	if len(l.lines) < 300 {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.n%300] = line
	}
	l.n++
}

func (l *lastLines) print(t *testing.T) {
	for i := range l.lines {
		if l.n > 300 {
			i = (l.n + i) % 300
		}
		t.Log(l.lines[i])
	}
}

// fail repeats the seed with a trace.
func failSeed(t *testing.T, seed uint64, segments int, err error) {
	t.Helper()
	t.Errorf("seed %d with %d segments: %v", seed, segments, err)
	r := newSeedRun(seed, segments)
	t.Log(r.text)
	var last lastLines
	r.world.EnableTrace(last.add)
	again := r.run()
	last.print(t)
	for _, p := range r.world.Peers {
		t.Logf("%s: queued %d, delivered %d, %+v", p.Name, p.Queued, p.Delivered, p.Conn.Stats())
	}
	if again == nil || again.Error() != err.Error() {
		t.Errorf("seed %d does not repeat: %v", seed, again)
	}
}

// runSeeds runs count seeds from first on all cores.
func runSeeds(t *testing.T, first uint64, count, segments int) {
	var next, events, resent, lost atomic.Uint64
	var group sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !t.Failed() {
				n := next.Add(1) - 1
				if n >= uint64(count) {
					return
				}
				r := newSeedRun(first+n, segments)
				if err := r.run(); err != nil {
					failSeed(t, first+n, segments, err)
					return
				}
				events.Add(uint64(r.world.Events))
				for i, p := range r.world.Peers {
					resent.Add(p.Conn.Stats().Resent)
					lost.Add(r.world.Links[i].Dropped + r.world.Links[i].Overflowed)
				}
			}
		})
	}
	group.Wait()
	t.Logf("seeds %d to %d: %d events, %d packets lost, %d retransmissions in %v", first, first+uint64(count)-1,
		events.Load(), lost.Load(), resent.Load(), time.Since(began).Round(time.Millisecond))
	// Many of the lost packets are acknowledgements, which need no retransmission; so this leaves room for
	// corruption, reordering, and pauses.
	if resent.Load()*10 > lost.Load()*13 {
		t.Errorf("%d retransmissions for %d packets lost: too many", resent.Load(), lost.Load())
	}
}

// TestSeeds transfers in both directions over networks with every fault.
func TestSeeds(t *testing.T) {
	runSeeds(t, 1, 4_000, 200)
}

// TestFreshSeeds runs new seeds.
func TestFreshSeeds(t *testing.T) {
	runSeeds(t, uint64(time.Now().UnixNano()), 300, 200)
}

func TestManySeeds(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("set URDMA_LONG=1 for 200,000 seeds and large transfers")
	}
	runSeeds(t, 1_000_000, 200_000, 200)
	runSeeds(t, 2_000_000, 300, 20_000)
}
