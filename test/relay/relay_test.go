package relay

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// path is a relay with a socket at each end, on the loopback interface.
type path struct {
	*Relay
	hosts [2]*net.UDPConn
}

func newPath(t *testing.T, f Fate) *path {
	t.Helper()
	p := &path{}
	var ends [2]End
	for i := range ends {
		h, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		p.hosts[i] = h
		ends[i] = End{Socket: netip.MustParseAddrPort("127.0.0.1:0"), Host: h.LocalAddr().(*net.UDPAddr).AddrPort()}
	}
	var err error
	if p.Relay, err = Start(ends[0], ends[1], f); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// send sends numbered datagrams from a host, and waits until the relay has received them.
func (p *path) send(t *testing.T, from, n int) {
	t.Helper()
	before := p.Counts().Received
	to := p.sockets[from].LocalAddr().(*net.UDPAddr).AddrPort()
	for i := range n {
		var b [100]byte
		binary.BigEndian.PutUint32(b[:], uint32(i))
		if _, err := p.hosts[from].WriteToUDPAddrPort(b[:], to); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); p.Counts().Received != before+uint64(i)+1; time.Sleep(10 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("the relay did not receive: %+v", p.Counts())
			}
		}
	}
}

// receive receives n datagrams at a host and returns their numbers.
func (p *path) receive(t *testing.T, at, n int) (numbers []int) {
	t.Helper()
	for range n {
		var b [1500]byte
		_ = p.hosts[at].SetReadDeadline(time.Now().Add(time.Minute))
		size, src, err := p.hosts[at].ReadFromUDPAddrPort(b[:])
		if err != nil || size != 100 {
			t.Fatalf("%d bytes, %v: the relay did %+v", size, err, p.Counts())
		}
		if want := p.sockets[at].LocalAddr().(*net.UDPAddr).AddrPort(); src != want {
			t.Fatalf("from %v, want %v", src, want)
		}
		numbers = append(numbers, int(binary.BigEndian.Uint32(b[:])))
	}
	return numbers
}

// TestFates: each fault, in both directions; the arriving datagrams agree with the counts.
func TestFates(t *testing.T) {
	const n = 100 // n and some more fit into the receiving socket
	for _, c := range []struct {
		name string
		fate Fate
		sane func(c Counts, numbers []int) bool
	}{
		{"none", Fate{}, func(c Counts, numbers []int) bool { return len(numbers) == n && slices.IsSorted(numbers) }},
		{"loss", Fate{Loss: 0.3}, func(c Counts, numbers []int) bool {
			return c.Lost > n/10 && c.Lost < n/2 && len(numbers) == n-int(c.Lost) && slices.IsSorted(numbers)
		}},
		{"all lost", Fate{Loss: 1}, func(c Counts, numbers []int) bool { return c.Lost == n }},
		{"duplicates", Fate{Duplicate: 0.3}, func(c Counts, numbers []int) bool {
			return c.Duplicated > n/10 &&
				len(numbers) == n+int(c.Duplicated)
		}},
		{"delay", Fate{Delay: 20 * time.Millisecond},
			func(c Counts, numbers []int) bool { return len(numbers) == n && slices.IsSorted(numbers) }},
		{"reordering", Fate{Reorder: 0.3, Late: 50 * time.Millisecond}, func(c Counts, numbers []int) bool {
			return c.Late > n/10 && len(numbers) == n && !slices.IsSorted(numbers) &&
				len(slices.Compact(slices.Sorted(slices.Values(numbers)))) == n
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for from := range 2 {
				c.fate.Seed = 11
				p := newPath(t, c.fate)
				p.send(t, from, n)
				arriving := n + int(p.Counts().Duplicated) - int(p.Counts().Lost)
				numbers := p.receive(t, 1-from, arriving)
				if counts := p.Counts(); !c.sane(counts, numbers) {
					t.Errorf("from %d: %+v, %d arrived: %v", from, counts, len(numbers), numbers)
				}
			}
		})
	}
}

// TestSeed: the same seed draws the same, another seed something else.
func TestSeed(t *testing.T) {
	lost := func(seed uint64) []int {
		p := newPath(t, Fate{Loss: 0.5, Seed: seed})
		p.send(t, 0, 100)
		return p.receive(t, 1, 100-int(p.Counts().Lost))
	}
	if a, b, c := lost(1), lost(1), lost(2); !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Errorf("seed 1: %v and %v, seed 2: %v", a, b, c)
	}
}

// TestBatch: datagrams that left in one send are passed on together, or only the first of them. A stranger's
// datagrams are not passed on.
func TestBatch(t *testing.T) {
	for _, first := range []bool{false, true} {
		p := newPath(t, Fate{FirstOnly: first})
		to := p.sockets[0].LocalAddr().(*net.UDPAddr).AddrPort()
		stranger, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if _, err := stranger.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.hosts[0].WriteMsgUDPAddrPort(make([]byte, 1000), segmentControl(100), to); err != nil {
			t.Skipf("this kernel does not cut: %v", err)
		}
		for end := time.Now().Add(time.Minute); p.Counts().Received < 10 ||
			p.Counts().Strangers == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%+v", p.Counts())
			}
		}
		c := p.Counts()
		want := 10
		if first && c.Joined > 0 {
			want = 1
		}
		p.receive(t, 1, want)
		if c = p.Counts(); c.Forwarded != uint64(want) || c.Strangers != 1 {
			t.Errorf("first only %v: %+v, want %d to go on", first, c, want)
		}
	}
}
