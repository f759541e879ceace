package linked

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
)

func TestConformance(t *testing.T) {
	for _, mtu := range []int{1500, 9000} {
		porttest.Run(t, func(t *testing.T) *porttest.Pair {
			n := New(1)
			slow := Path{Delay: 3 * time.Microsecond, Jitter: time.Microsecond, Rate: 10e9}
			a, b := n.Pair(Options{MTU: mtu}, Options{MTU: mtu}, slow, slow)
			return &porttest.Pair{A: a, B: b, Lossy: true, Step: func() {
				n.Advance(n.Now() + int64(10*time.Microsecond))
			}}
		})
	}
}

// send sends frames with their numbers on a's wire.
func send(t *testing.T, p *Port, from, count int) {
	t.Helper()
	pk := make([]port.Packet, count)
	if n := p.Queue(0).Alloc(pk); n != count {
		t.Fatalf("Alloc gave %d of %d", n, count)
	}
	for i := range pk {
		pk[i].Data = pk[i].Data[:64]
		clear(pk[i].Data)
		binary.BigEndian.PutUint64(pk[i].Data[14:], uint64(from+i))
	}
	if n := p.Queue(0).Tx(pk); n != count {
		t.Fatalf("Tx took %d of %d", n, count)
	}
	p.Queue(0).Flush()
}

func recv(p *Port) (seqs []int) {
	pk := make([]port.Packet, 64)
	for {
		n := p.Queue(0).Rx(pk)
		if n == 0 {
			return seqs
		}
		for i := range pk[:n] {
			seqs = append(seqs, int(binary.BigEndian.Uint64(pk[i].Data[14:])))
		}
		p.Queue(0).Free(pk[:n])
	}
}

// lossy sends 2,000 frames over a lossy wire and returns the transcript and the order of arrival.
func lossy(t *testing.T, seed uint64) (transcript string, seqs []int) {
	n := New(seed)
	var b strings.Builder
	n.Trace(func(e Event) {
		b.WriteString(e.From + " " + e.What + " ")
		b.WriteString(time.Duration(e.At).String() + "\n")
	})
	bad := Path{Loss: 0.1, Duplicate: 0.05, Corrupt: 0.02, Reorder: 0.1, Delay: 20 * time.Microsecond,
		Jitter: time.Microsecond, Rate: 10e9}
	x, y := n.Pair(Options{}, Options{}, bad, Path{})
	for i := 0; i < 2000; i += 20 {
		send(t, x, i, 20)
		n.Advance(n.Now() + int64(5*time.Microsecond))
		seqs = append(seqs, recv(y)...)
	}
	n.Advance(n.Now() + int64(time.Second))
	return b.String(), append(seqs, recv(y)...)
}

func TestBadWireIsDeterministic(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	t1, s1 := lossy(t, seed)
	t2, _ := lossy(t, seed)
	if t1 != t2 {
		t.Fatal("the same seed gave two different runs")
	}
	if t3, _ := lossy(t, seed+1); t1 == t3 {
		t.Fatal("another seed gave the same run")
	}
	if n := len(s1); n < 1700 || n > 2000 {
		t.Fatalf("%d of 2000 frames arrived with 10 %% loss and 5 %% duplicates", n)
	}
	swaps := 0
	for i := 1; i < len(s1); i++ {
		if s1[i] < s1[i-1] {
			swaps++
		}
	}
	if swaps < 50 {
		t.Fatalf("only %d frames were overtaken", swaps)
	}
	for _, what := range []string{Lost, Duplicated, Reordered, Corrupted} {
		if strings.Count(t1, " "+what+" ") < 20 {
			t.Errorf("hardly any frame was %s", what)
		}
	}
}

func TestDelayAndRate(t *testing.T) {
	n := New(1)
	// 64 bytes and 24 of overhead at 1 Gb/s take 704 ns each.
	a, b := n.Pair(Options{}, Options{}, Path{Delay: time.Microsecond, Rate: 1e9}, Path{})
	send(t, a, 0, 2)
	for _, want := range []int64{1704, 2408} {
		at := int64(0)
		for len(b.queue.rx) == 0 {
			next, ok := n.Next()
			if !ok {
				t.Fatal("nothing is due")
			}
			n.Advance(next)
			at = next
		}
		recv(b)
		if at != want {
			t.Errorf("frame arrived at %d ns, want %d", at, want)
		}
	}
}

func TestNothingLeavesBeforeFlush(t *testing.T) {
	n := New(1)
	a, b := n.Pair(Options{}, Options{}, Path{}, Path{})
	pk := make([]port.Packet, 1)
	a.Queue(0).Alloc(pk)
	pk[0].Data = pk[0].Data[:60]
	a.Queue(0).Tx(pk)
	n.Advance(1e9)
	if got := recv(b); len(got) != 0 {
		t.Fatal("a frame arrived before Flush")
	}
	a.Queue(0).Flush()
	if got := recv(b); len(got) != 1 {
		t.Fatal("no frame after Flush")
	}
}

func TestBounds(t *testing.T) {
	n := New(1)
	a, b := n.Pair(Options{TxRing: 4, Buffers: 16}, Options{RxRing: 3}, Path{Rate: 1e9}, Path{})
	pk := make([]port.Packet, 20)
	got := a.Queue(0).Alloc(pk)
	if got != 16 || a.Stats().NoBuffer != 1 {
		t.Fatalf("Alloc gave %d of 16 buffers, stats %+v", got, a.Stats())
	}
	for i := range pk[:got] {
		pk[i].Data = pk[i].Data[:60]
	}
	if k := a.Queue(0).Tx(pk[:got]); k != 4 {
		t.Fatalf("Tx took %d, the ring has 4", k)
	}
	a.Queue(0).Flush()
	if k := a.Queue(0).Tx(pk[4:got]); k != 0 {
		t.Fatalf("Tx took %d while 4 frames are still being sent", k)
	}
	n.Advance(1e6)
	if s := b.Stats(); s.RxDropped != 1 {
		t.Fatalf("4 frames into a ring of 3: %+v", s)
	}
}

func TestMisuseIsReported(t *testing.T) {
	var said []string
	n := New(1)
	opt := Options{Misuse: func(s string) { said = append(said, s) }}
	a, _ := n.Pair(opt, Options{}, Path{}, Path{})
	pk := make([]port.Packet, 2)
	expect := func(what string) {
		t.Helper()
		if len(said) != 1 || !strings.Contains(said[0], what) {
			t.Fatalf("want one report of %q, got %q", what, said)
		}
		said = nil
	}
	a.Queue(0).Alloc(pk)
	a.Queue(0).Free(pk)
	a.Queue(0).Free(pk[:1])
	expect("Free: buffer")
	a.Queue(0).Alloc(pk)
	for i := range pk {
		pk[i].Data = pk[i].Data[:60]
	}
	a.Queue(0).Tx(pk[1:])
	a.Queue(0).Tx(pk[:1])
	expect("allocated before one that was sent already")
	a.Queue(0).Free([]port.Packet{{}})
	expect("no buffer of this port")
	a.Queue(0).Alloc(pk[:1])
	pk[0].Data = pk[0].Data[2:60]
	a.Queue(0).Tx(pk[:1])
	expect("not a frame at the buffer's start")
}

func TestFreedBufferIsPoisoned(t *testing.T) {
	n := New(1)
	a, b := n.Pair(Options{}, Options{}, Path{}, Path{})
	send(t, a, 0, 1)
	pk := make([]port.Packet, 1)
	b.Queue(0).Rx(pk)
	b.Queue(0).Free(pk)
	if pk[0].Data[14] != poison {
		t.Fatal("a freed buffer still reads as the frame")
	}
}

func TestLinkDown(t *testing.T) {
	n := New(1)
	a, b := n.Pair(Options{}, Options{}, Path{Delay: time.Microsecond}, Path{})
	send(t, a, 0, 1)
	b.SetLink(false)
	if a.Link() || b.Link() {
		t.Fatal("link is up on a pulled cable")
	}
	send(t, a, 1, 3)
	n.Advance(1e6)
	a.SetLink(true)
	send(t, a, 4, 1)
	n.Advance(2e6)
	if got := recv(b); len(got) != 1 || got[0] != 4 {
		t.Fatalf("arrived: %v, want only frame 4", got)
	}
	if s := a.Stats(); s.TxDropped != 3 || s.LinkDowns != 1 || s.LinkUps != 2 {
		t.Fatalf("stats %+v", s)
	}
}

func TestDropFilter(t *testing.T) {
	n := New(1)
	a, b := n.Pair(Options{}, Options{}, Path{Drop: func(n uint64, _ []byte) bool { return n == 1 }}, Path{})
	send(t, a, 0, 3)
	if got := recv(b); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Fatalf("arrived: %v, want 0 and 2", got)
	}
}
