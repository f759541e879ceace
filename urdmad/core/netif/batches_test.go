package netif

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
)

// lossy sends n packets and sends each lost one again until it arrives; lost decides for a packet, sent with others
// or alone.
func lossy(b *batch, now clock.Time, n int, lost func(alone bool) bool) {
	again := false
	for sent := 0; sent < n; {
		if again {
			b.sendAgain(now)
		}
		if again = lost(b.send(now).Has(port.TxAlone)); !again {
			sent++
		}
	}
}

// TestBatches: datagrams are sent one by one, for a while, if that ends heavy loss, and only then.
func TestBatches(t *testing.T) {
	const rounds = 20000
	random := rand.New(rand.NewPCG(7, 1))
	chance := func(p float64) func(bool) bool { return func(bool) bool { return random.Float64() < p } }
	together, sent := 0, 0
	for _, c := range []struct {
		name  string
		lost  func(alone bool) bool
		alone bool
	}{
		{"no loss", chance(0), false},
		{"a tenth", chance(0.1), false},
		{"half, either way", chance(0.5), false},
		{"a path that was cut for a moment", func(bool) bool { sent++; return sent > 5000 && sent < 5300 }, false},
		{"all but the first of 44", func(alone bool) bool { together++; return !alone && together%44 != 0 }, true},
		{"every second of two", func(alone bool) bool { together++; return !alone && together%2 != 0 }, true},
		{"that, on a path that loses one in 20", func(alone bool) bool {
			together++
			return random.Float64() < 0.05 || !alone && together%8 != 0
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all Batches
			blamed := 0
			all.Blamed = func(netip.Addr) { blamed++ }
			b := all.to(netip.MustParseAddr("198.18.0.2"))
			lossy(b, 0, rounds, c.lost)
			if got := all.Alone(0) == 1; got != c.alone || (blamed == 1) != c.alone {
				t.Errorf("one by one: %v (told %d times), want %v", got, blamed, c.alone)
			}
			lossy(b, aloneFor+1, 1, chance(0))
			if lossy(b, aloneFor+1, 1, chance(0)); all.Alone(aloneFor+1) != 0 || b.send(aloneFor+1) != 0 {
				t.Errorf("after %d s they still go one by one", aloneFor/clock.Second)
			}
		})
	}
}

// TestBatchesGoBack is TestBatches for senders that go back to the lost packet: occasional losses never cause sending
// one by one.
func TestBatchesGoBack(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 1))
	for _, c := range []struct {
		loss    float64
		spoiled bool
	}{{0, false}, {0.01, false}, {0.05, false}, {0.1, false}, {0, true}, {0.02, true}} {
		all := Batches{goBack: true}
		b := all.to(netip.MustParseAddr("198.18.0.2"))
		const window = 32
		sent := 0 // packets, without retransmissions
		for acked := 0; acked < 20000; {
			arrived, lost := acked, false
			for i := acked; i < acked+window; i++ {
				if i < sent {
					b.sendAgain(0)
				}
				alone := b.send(0).Has(port.TxAlone)
				sent = max(sent, i+1)
				lost = lost || random.Float64() < c.loss || c.spoiled && !alone && i > acked
				if !lost {
					arrived++
				}
			}
			acked = arrived
		}
		if got := all.Alone(0) == 1; got != c.spoiled {
			t.Errorf("loss %v, spoiled %v: one by one: %v", c.loss, c.spoiled, got)
		}
	}
}

// TestWholeSendsLost: a path that drops one send in twenty, with all its datagrams, and of datagrams sent singly one
// in twenty or none, does not count as one that spoils them.
func TestWholeSendsLost(t *testing.T) {
	const minutes, seeds, size = 5, 20, 44
	for _, single := range []float64{0.05, 0} {
		alone := 0
		for seed := range uint64(seeds) {
			random := rand.New(rand.NewPCG(seed, 2))
			var all Batches
			b := all.to(netip.MustParseAddr("198.18.0.2"))
			for minute := range clock.Time(minutes) {
				left, dropped := 0, false // of the send
				lossy(b, minute*60*clock.Second, 100000, func(alone bool) bool {
					if alone {
						left = 0
						return random.Float64() < single
					}
					if left == 0 {
						left, dropped = size, random.Float64() < 0.05
					}
					left--
					return dropped
				})
				if all.Alone(minute*60*clock.Second) > 0 {
					alone++
					break
				}
			}
		}
		if alone > seeds/10 {
			t.Errorf("single ones lost %v: %d of %d paths were taken for ones that spoil datagrams", single, alone, seeds)
		}
	}
}

// TestSpoiledNowAndThen: a path that spoils datagrams is recognized although most of its traffic is single datagrams,
// more of them between two sends of many than a proof takes.
func TestSpoiledNowAndThen(t *testing.T) {
	for _, loss := range []float64{0, 0.005} {
		random := rand.New(rand.NewPCG(9, 1))
		lost := func(bool) bool { return random.Float64() < loss }
		var all Batches
		b := all.to(netip.MustParseAddr("198.18.0.2"))
		for range 10 {
			n := 0
			lossy(b, 0, 200, func(alone bool) bool { n++; return lost(alone) || !alone && n%44 != 0 })
			lossy(b, 0, trialPackets+1000, lost)
		}
		if all.Alone(0) != 1 {
			t.Errorf("with a loss of %v it is not recognized", loss)
		}
	}
}

// TestAloneGoesByTime: a peer to which nothing more is sent, and a peer that was removed and blamed again,
// are not counted for longer, or twice.
func TestAloneGoesByTime(t *testing.T) {
	var all Batches
	peer := netip.MustParseAddr("198.18.0.2")
	spoil := func(now clock.Time) {
		n := 0
		lossy(all.to(peer), now, 20000, func(alone bool) bool { n++; return !alone && n%2 != 0 })
	}
	spoil(0)
	connected := all.to(peer) // like a connection that continues
	if n := all.Alone(aloneFor - 1); n != 1 {
		t.Errorf("%d peers are sent to one by one, expected 1", n)
	}
	if n := all.Alone(aloneFor); n != 0 {
		t.Errorf("%d peers, of one whose time is over", n)
	}
	all.peers = nil // as if no record could be removed by itself
	spoil(1)
	if n := all.Alone(2); n != 1 {
		t.Errorf("%d peers, of one that was forgotten and blamed anew", n)
	}
	connected.send(aloneFor) // the first record ends
	if n := all.Alone(aloneFor); n != 1 {
		t.Errorf("%d peers, of one whose new time goes on", n)
	}
}

// TestStrangersMakeNobodyForget: answered requests from apparently many addresses don't make the port forget which
// peer datagrams reach only one by one.
func TestStrangersMakeNobodyForget(t *testing.T) {
	var all Batches
	peer := netip.MustParseAddr("198.18.0.2")
	together := 0
	lossy(all.to(peer), 0, 20000, func(alone bool) bool { together++; return !alone && together%2 != 0 })
	for i := range 3 * mostPeers {
		all.to(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})).send(0)
		if len(all.peers) > mostPeers {
			t.Fatalf("%d peers are remembered", len(all.peers))
		}
	}
	if !all.to(peer).send(1).Has(port.TxAlone) {
		t.Error("the peer was forgotten")
	}
}
