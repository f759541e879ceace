package places

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// TestSourceOf: which addresses count together.
func TestSourceOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1", "fe80::2", false},
		{"fe80::1%eth0", "fe80::1", true},
		{"fd00::1", "fd00::ffff:1:2:3", true},
	} {
		if same := sourceOf(netip.MustParseAddr(c.a)) == sourceOf(netip.MustParseAddr(c.b)); same != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, same)
		}
	}
}

func address(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }

// TestWhoLeaves: the newcomer gets the oldest place of the source that has the most.
func TestWhoLeaves(t *testing.T) {
	p := New(4)
	var gone []int
	take := func(name, from int) { p.Take(address(from), func() { gone = append(gone, name) }) }
	for name, from := range []int{1, 2, 2, 1, // all are taken
		2, // the oldest of the first
		3, // the second has three now
		3, // the oldest of all: 1 has one, 2 and 3 two
	} {
		take(name, from)
	}
	if want := []int{0, 1, 2}; len(gone) != 3 || gone[0] != want[0] || gone[1] != want[1] || gone[2] != want[2] {
		t.Errorf("%v have left, expected %v", gone, want)
	}
	if p.taken != 4 {
		t.Errorf("%d places are taken", p.taken)
	}
}

// guest is the owner of a place.
type guest struct {
	from  int
	place *Place
}

// TestPlacesAtRandom: for any order of Take and Leave, the bound holds, no place is lost, and no source
// loses a place while another has more.
func TestPlacesAtRandom(t *testing.T) {
	const most = 20
	r := rand.New(rand.NewPCG(1, 2))
	p := New(most)
	here, have := map[*guest]bool{}, map[int]int{}
	leave := func(g *guest) {
		delete(here, g)
		have[g.from]--
	}
	evicted := false
	for range 20000 {
		if r.IntN(3) == 0 {
			for g := range here {
				g.place.Leave()
				g.place.Leave()
				leave(g)
				break
			}
			continue
		}
		g := &guest{from: r.IntN(1 + r.IntN(8))}
		full := len(here) == most
		evicted = false
		g.place = p.Take(address(g.from), func() {
			evicted = true
			for _, n := range have {
				if n > have[g.from] {
					t.Fatalf("one of %d leaves where another has %d", have[g.from], n)
				}
			}
			leave(g)
		})
		here[g] = true
		have[g.from]++
		if evicted != full || p.taken != len(here) {
			t.Fatalf("evicted: %v, all taken: %v; %d places for %d", evicted, full, p.taken, len(here))
		}
	}
}
