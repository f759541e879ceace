package reliabletest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// fabric is a switch with a cable to each host. Each cable has the same rate in both directions; the switch has a
// queue in front of each host.
type fabric struct {
	rate     float64 // bits per second
	delay    reliable.Time
	queue    int // bytes, of each of the switch's queues
	size     int // bytes of a segment
	loss     float64
	up, down []*Link
	streams  []*stream
	rng      *rand.Rand
}

func newFabric(hosts int, seed uint64, f fabric) *fabric {
	f.rng = rand.New(rand.NewPCG(seed, 3))
	for range hosts {
		down := &Link{Rate: f.rate, Size: f.size, Delay: f.delay, Queue: f.queue, Faults: Faults{Loss: f.loss}}
		f.down = append(f.down, down)
		f.up = append(f.up, &Link{Rate: f.rate, Size: f.size, Delay: f.delay})
	}
	return &f
}

// send adds a connection on which host from sends to host to.
func (f *fabric) send(from, to int) {
	cfg := reliable.Config{Window: 1024, RecvWindow: 1024, PeerWindow: 1024, Batches: true}
	cfg.LocalISN, cfg.PeerISN = wire.PSN(f.rng.Uint32()), wire.PSN(f.rng.Uint32())
	peer := cfg
	peer.LocalISN, peer.PeerISN = cfg.PeerISN, cfg.LocalISN
	s := newStreamBetween(f.rng.Uint64(), Link{Rate: f.rate, Size: f.size}, cfg, peer)
	for i, way := range [2][2]int{{from, to}, {to, from}} {
		s.Links[i], s.Hops[i] = f.up[way[0]], f.down[way[1]]
	}
	s.Peers[0].Queued = 0
	f.streams = append(f.streams, s)
}

// warm lets each connection send a segment, so that it knows its round trip, one connection after the other.
func (f *fabric) warm() error {
	for _, s := range f.streams {
		s.Peers[0].Queued = 1
	}
	return until(f.streams, ms)
}

// result is how one exchange of messages went.
type result struct {
	first, all float64 // times until the first and the last message had arrived, of the ideal time
	resent     float64 // of the segments sent once
	timeouts   uint64
}

func (r result) String() string {
	return fmt.Sprintf("first %5.2f, all %5.2f of ideal, %.3f resent, %d timeouts", r.first, r.all, r.resent, r.timeouts)
}

// exchange lets each connection send so many segments, all at once, after a first one. ideal is how long the busiest
// cable needs.
func (f *fabric) exchange(segments int, ideal, limit reliable.Time) (r result, err error) {
	if err := f.warm(); err != nil {
		return r, err
	}
	start := f.streams[0].Now
	for _, s := range f.streams {
		start = max(start, s.Now)
	}
	for _, s := range f.streams {
		s.At(start, func() { s.Peers[0].Queued = segments; s.Wake(0, start) })
	}
	var done []reliable.Time
	finished := make([]bool, len(f.streams))
	for at := start; len(done) < len(f.streams); {
		if at += ideal/200 + us; at > start+limit {
			return r, fmt.Errorf("%d of %d messages have arrived after %d ms", len(done), len(f.streams), limit/ms)
		}
		if err := until(f.streams, at); err != nil {
			return r, err
		}
		for i, s := range f.streams {
			if !finished[i] && int(s.Peers[1].Delivered) == 1+segments {
				finished[i] = true
				done = append(done, at-start)
			}
		}
	}
	var sent, resent uint64
	for _, s := range f.streams {
		st := s.stats()
		sent, resent, r.timeouts = sent+st.Sent, resent+st.Resent, r.timeouts+st.Timeouts
	}
	r.resent = float64(resent) / float64(sent)
	r.first, r.all = float64(done[0])/float64(ideal), float64(done[len(done)-1])/float64(ideal)
	return r, nil
}

// fabricCase is an exchange of messages and what it may cost.
type fabricCase struct {
	hosts, messages, queue int // messages of 64 KiB for each connection; bytes
	loss                   float64
	most                   float64 // time until all messages have arrived, of the ideal time
	resent                 float64
}

// run lets each host send to those that receivers names.
func (c fabricCase) run(t *testing.T, hosts int, receivers func(from int) []int) {
	t.Helper()
	f := newFabric(hosts, 1, fabric{rate: 10e9, delay: 5 * us, queue: c.queue, size: 1500, loss: c.loss})
	busiest, segments := make([]int, hosts), c.messages*(64<<10+1447)/1448
	for from := range hosts {
		for _, to := range receivers(from) {
			f.send(from, to)
			busiest[to] += segments
		}
	}
	ideal := reliable.Time(float64(slices.Max(busiest)*f.size) * 8e9 / f.rate)
	r, err := f.exchange(segments, ideal, reliable.Second)
	if err != nil {
		t.Errorf("%+v: %v", c, err)
		return
	}
	t.Logf("%4d hosts, %4d KiB, a queue of %4d KiB, loss of %g: %v", c.hosts, 64*c.messages, c.queue>>10, c.loss, r)
	if r.all > c.most || r.resent > c.resent {
		t.Errorf("want all within %.2f of the ideal time and %.3f resent", c.most, c.resent)
	}
}

// TestIncast: hosts send to one host at the same time. More segments arrive at the switch than its queue holds, and
// most of the first ones are lost.
func TestIncast(t *testing.T) {
	for _, c := range []fabricCase{
		{8, 1, 256 << 10, 0, 1.1, 0.5}, {8, 16, 256 << 10, 0, 1.1, 0.2}, {8, 16, 1 << 20, 0.001, 1.1, 0.4},
		{64, 1, 0, 0, 1.1, 0}, {64, 1, 1 << 20, 0, 1.2, 0.9}, {64, 1, 256 << 10, 0, 2.5, 1.3},
		{64, 16, 1 << 20, 0, 1.1, 0.2}, {64, 16, 256 << 10, 0, 1.1, 0.2},
		{256, 1, 1 << 20, 0, 1.2, 1.2}, {256, 1, 256 << 10, 0, 3.5, 2.8}, {1024, 1, 1 << 20, 0, 2, 2.3},
	} {
		c.run(t, c.hosts+1, func(from int) []int {
			if from == 0 {
				return nil
			}
			return []int{0}
		})
	}
}

// TestAllToAll: each host sends to each other one at the same time. The busiest cables are those of all hosts.
func TestAllToAll(t *testing.T) {
	for _, c := range []fabricCase{
		{16, 1, 0, 0, 1.3, 0}, {16, 1, 256 << 10, 0, 1.3, 0.01}, {16, 4, 256 << 10, 0, 3, 0.05},
		{16, 4, 1 << 20, 0.001, 1.5, 0.01}, {64, 1, 256 << 10, 0, 2, 0.05},
	} {
		c.run(t, c.hosts, func(from int) (others []int) {
			for i := 1; i < c.hosts; i++ {
				others = append(others, (from+i)%c.hosts)
			}
			return others
		})
	}
}
