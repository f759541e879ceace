package pathmtu

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

const ms = int64(1e6)

var peer = netip.MustParseAddrPort("10.0.0.2:30035")

// network is a table with a path to one peer, on a virtual clock.
type network struct {
	t      *testing.T
	table  *Table
	rng    *rand.Rand
	now    int64
	queue  []flight
	delay  int64
	jitter int64
	loss   float64
	path   int // longest datagram that passes
	most   int // largest datagram that the peer accepts
	silent bool
	probes int
}

// flight is an answer under way.
type flight struct {
	at    int64
	nonce uint32
	size  int
}

func newNetwork(t *testing.T, seed uint64, own int) *network {
	n := &network{t: t, rng: rand.New(rand.NewPCG(seed, 1)), delay: 100e3, path: own, most: own, now: 5}
	n.table = New(1172, own, n.rng.Uint32)
	return n
}

// send answers the probes that pass. An answer is as long as its probe, so it is lost equally often.
func (n *network) send(out []Outgoing) {
	for _, o := range out {
		n.probes++
		if o.To != peer {
			n.t.Errorf("probe to %v", o.To)
		}
		if n.silent || o.Size > n.path || o.Size > n.most || n.rng.Float64() < n.loss || n.rng.Float64() < n.loss {
			continue
		}
		at := n.now + 2*n.delay
		if n.jitter > 0 {
			at += n.rng.Int64N(n.jitter)
		}
		n.queue = append(n.queue, flight{at, o.Nonce, o.Size})
	}
}

// run continues until no probe or answer is under way.
func (n *network) run() {
	for n.table.Deadline() != never || len(n.queue) > 0 {
		next, which := n.table.Deadline(), -1
		for i, f := range n.queue {
			if f.at < next {
				next, which = f.at, i
			}
		}
		if which < 0 && next == never {
			return
		}
		n.now = max(n.now, next)
		if which < 0 {
			n.send(n.table.Tick(n.now))
			continue
		}
		f := n.queue[which]
		n.queue = append(n.queue[:which], n.queue[which+1:]...)
		n.send(n.table.Answered(n.now, peer.Addr(), f.nonce, f.size, n.most))
	}
}

// find looks the path up and returns the time that the search takes.
func (n *network) find() (took int64) {
	n.t.Helper()
	began, ended := n.now, int64(-1)
	n.send(n.table.Find(n.now, peer, func() { ended = n.now }))
	n.run()
	if ended < 0 {
		n.t.Fatal("the search never ends")
	}
	return ended - began
}

func (n *network) check(want int) {
	n.t.Helper()
	if size, ok := n.table.Size(peer.Addr()); !ok || size > want || size <= want-close {
		n.t.Errorf("found %d (%v), the path takes %d", size, ok, want)
	}
}

// TestSizes: the search ends within 16 bytes of the path's MTU, for paths and ports of all sizes; if the
// path carries the largest size, after one round trip.
func TestSizes(t *testing.T) {
	for _, c := range []struct{ own, path, peerMost int }{
		{1472, 1472, 1472}, {1472, 1392, 1472}, {1472, 1172, 1472}, {1472, 1471, 1472}, {1472, 1200, 1472},
		{8972, 8972, 8972}, {8972, 1472, 8972}, {8972, 8972, 1472}, {8972, 4000, 1472}, {65507, 65507, 65507},
		{65507, 1472, 65507}, {65507, 8972, 65507}, {548, 548, 548}, {1472, 1300, 1400},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			n := newNetwork(t, 1, c.own)
			n.path, n.most = c.path, c.peerMost
			took := n.find()
			n.check(min(c.own, c.path, c.peerMost))
			if c.path >= c.own && c.peerMost >= c.own && took != 2*n.delay {
				t.Errorf("a path that takes all took %d ns", took)
			}
			if n.probes > 150 || took > 500*ms {
				t.Errorf("%d probes, %d ms", n.probes, took/ms)
			}
		})
	}
}

// TestLoss: random loss may make the result smaller than the path allows, rarely, but never larger.
func TestLoss(t *testing.T) {
	short := 0
	for seed := range uint64(500) {
		n := newNetwork(t, seed, 8972)
		n.loss, n.jitter, n.path = 0.05, 3*ms, 1472+n.rng.IntN(7500)
		n.find()
		size, ok := n.table.Size(peer.Addr())
		if ok && size > n.path {
			t.Errorf("seed %d: found %d, the path takes %d", seed, size, n.path)
		}
		if size < n.path-n.path/8 {
			short++
		}
	}
	if short > 25 {
		t.Errorf("%d of 500 found an eighth less than there is", short)
	}
}

// TestOlderPeer: the wait for a silent peer is less than half a second, the peer isn't probed again soon,
// and its path MTU is unknown.
func TestOlderPeer(t *testing.T) {
	n := newNetwork(t, 1, 1472)
	n.silent = true
	if took := n.find(); took > 400*ms {
		t.Errorf("took %d ms", took/ms)
	}
	if _, ok := n.table.Size(peer.Addr()); ok || n.probes > 6 {
		t.Errorf("known %v after %d probes", ok, n.probes)
	}
	probes := n.probes
	if n.find() != 0 || n.probes != probes {
		t.Error("asked again at once")
	}
	n.now += silentFor
	n.silent = false
	if n.find(); n.probes == probes {
		t.Error("never asked again")
	}
	n.check(1472)
}

// TestHeldUp: a peer whose answers arrive after the search, for example because its host was busy, does not count as
// one that lacks probes: its path is searched again at the next request.
func TestHeldUp(t *testing.T) {
	n := newNetwork(t, 7, 1472)
	n.delay = 400 * ms // in each direction
	n.send(n.table.Find(n.now, peer, nil))
	n.run()
	if size, known := n.table.Size(peer.Addr()); known {
		t.Fatalf("%d bytes are known to pass, of answers that came late", size)
	}
	n.delay, n.path = 100e3, 1300
	n.now += ms
	n.send(n.table.Suspect(n.now, peer))
	n.run()
	if size, known := n.table.Size(peer.Addr()); !known || size < 1300-close || size > 1300 {
		t.Errorf("%d bytes pass (%v), expected nearly 1300", size, known)
	}
}

// TestShrinks: if a path's MTU shrinks, that is found out when nothing passes, and by the next search; if it grows,
// after ten minutes.
func TestShrinks(t *testing.T) {
	for _, by := range []string{"suspicion", "search"} {
		n := newNetwork(t, 1, 1472)
		told := 0
		n.table.Changed = func(_ netip.Addr, size int) { told = size }
		n.find()
		n.check(1472)
		n.path = 1300
		n.now += 2e9
		if by == "search" {
			n.find()
		} else {
			n.send(n.table.Suspect(n.now, peer))
			n.run()
		}
		n.check(1300)
		if size, _ := n.table.Size(peer.Addr()); told != size {
			t.Errorf("%s: told %d, known %d", by, told, size)
		}
		n.path = 1472
		n.now += 2e9
		n.find()
		n.check(1472) // the full size is tried each time
		n.path = 1300
		n.now += 2e9
		n.find()
		n.path = 1400
		n.now += 2e9
		n.find()
		n.check(1300) // sizes in between are not tried
		n.now += raiseAfter
		n.find()
		n.check(1400)
	}
}

// TestDead: the result for a peer that no longer answers is kept.
func TestDead(t *testing.T) {
	n := newNetwork(t, 1, 1472)
	n.path = 1300
	n.find()
	n.silent = true
	n.now += 2e9
	n.send(n.table.Suspect(n.now, peer))
	n.run()
	n.check(1300)
	probes := n.probes
	n.send(n.table.Suspect(n.now, peer))
	if n.probes != probes {
		t.Error("suspected again at once")
	}
}

// TestForged: answers without a matching probe are ignored.
func TestForged(t *testing.T) {
	n := newNetwork(t, 1, 1472)
	n.path = 1300
	var out []Outgoing
	done := false
	out = n.table.Find(n.now, peer, func() { done = true })
	n.table.Answered(n.now, peer.Addr(), out[0].Nonce+1, 1472, 1472)
	n.table.Answered(n.now, peer.Addr(), out[0].Nonce, 1471, 1472)
	n.table.Answered(n.now, netip.MustParseAddr("10.0.0.3"), out[0].Nonce, 1472, 1472)
	if _, ok := n.table.Size(peer.Addr()); ok || done {
		t.Error("believed")
	}
	n.send(out)
	n.run()
	n.check(1300)
}

// TestBounded: the table doesn't grow without end.
func TestBounded(t *testing.T) {
	n := newNetwork(t, 1, 1472)
	at := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 30035)
	}
	for i := range maxEntries + 10 {
		n.table.Find(n.now, at(i), nil)
	}
	if len(n.table.entries) > maxEntries {
		t.Errorf("%d entries", len(n.table.entries))
	}
	for n.table.Deadline() != never {
		n.now = n.table.Deadline()
		n.table.Tick(n.now)
	}
	n.now += silentFor
	if n.table.Find(n.now, at(maxEntries+20), nil); len(n.table.entries) > maxEntries || n.table.Deadline() == never {
		t.Errorf("%d entries, and no room for a new one", len(n.table.entries))
	}
}

// many is one of many peers.
func many(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 30035)
}

// TestManySearches: the table knows which of many searches is due first, for any answers, and all searches end.
func TestManySearches(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		table := New(1172, 9000, r.Uint32)
		ended, began := 0, 0
		now := int64(1)
		var sent []Outgoing
		for step := 0; step < 1500 || len(table.searching) > 0; step++ {
			if step < 1500 {
				began++
				sent = append(sent, table.Find(now, many(r.IntN(500)), func() { ended++ })...)
			}
			for range r.IntN(3) {
				if len(sent) > 0 {
					o := sent[r.IntN(len(sent))]
					sent = append(sent, table.Answered(now, o.To.Addr(), o.Nonce, o.Size, 1172+r.IntN(9000))...)
				}
			}
			first := int64(never)
			for _, e := range table.entries {
				if e.search != nil {
					first = min(first, e.search.at)
				}
			}
			if got := table.Deadline(); got != first {
				t.Fatalf("seed %d: Tick is due at %d, expected %d", seed, got, first)
			}
			now += r.Int64N(10 * ms)
			sent = append(sent, table.Tick(now)...)
			if table.Deadline() <= now {
				t.Fatalf("seed %d: due at %d, it is %d", seed, table.Deadline(), now)
			}
		}
		if ended != began {
			t.Errorf("seed %d: %d of %d ended", seed, ended, began)
		}
	}
}

// TestFullOfSilence: a client that searches for thousands of absent peers prevents nobody from searching a path.
func TestFullOfSilence(t *testing.T) {
	table := New(1172, 9000, rand.New(rand.NewPCG(1, 2)).Uint32)
	now := int64(1)
	for i := range maxEntries {
		table.Find(now, many(i), nil)
	}
	for len(table.searching) > 0 {
		now = table.Deadline()
		table.Tick(now)
	}
	for i := range 100 {
		if out := table.Find(now, many(maxEntries+i), nil); len(out) == 0 {
			t.Fatalf("peer %d is not looked at", i)
		}
		if n := len(table.entries); n > maxEntries {
			t.Fatalf("%d entries", n)
		}
	}
}

// TestPeerSaysLessAndLess: a peer that claims a smaller maximum in each answer does not make us store more for it.
func TestPeerSaysLessAndLess(t *testing.T) {
	table := New(1172, 9000, rand.New(rand.NewPCG(1, 2)).Uint32)
	out := table.Find(1, peer, nil)
	for most := 8999; most > 7000; most-- {
		table.Answered(1, peer.Addr(), out[0].Nonce, 1172, most)
		if e := table.entries[peer.Addr()]; e.search == nil || len(e.search.sizes) > 3 {
			t.Fatalf("%+v", e.search)
		}
	}
}
