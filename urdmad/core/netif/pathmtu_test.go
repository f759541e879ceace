package netif_test

import (
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// setPass makes both directions carry datagrams of up to size bytes with don't-fragment, and resets the
// counters.
func setPass(w *enginetest.World, size int) {
	for _, p := range []*enginetest.Pipe{w.PipeA, w.PipeB} {
		p.Pass, p.Lost, p.Fragmented = size, 0, 0
	}
}

// TestPathTakesLess: over a path with a smaller MTU than the ports, which reports no errors, a connection has
// segments that pass, and everything but the probes arrives.
func TestPathTakesLess(t *testing.T) {
	for _, size := range []int{1472, 1400, 1300, 1172} {
		w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
		setPass(w, size)
		a, b := w.Pair(false, nil)
		setPass(w, size)
		w.NewTraffic(a, b, enginetest.Load{Ops: 100, MaxSize: 40000}).Run(20 * time.Second)
		for name, p := range map[string]*enginetest.Pipe{"a": w.PipeA, "b": w.PipeB} {
			if p.Lost+p.Fragmented > 0 {
				t.Errorf("%d: of what %s sent %d were lost and %d fragmented", size, name, p.Lost, p.Fragmented)
			}
		}
		if s, ok := w.A.Engine.TRP.Port(0).Conn(a.Q.Connection().Local.Port()).Inspect(); !ok || s.PathMTU > size+28 ||
			s.PathMTU < size+28-16 {
			t.Errorf("%d: the path's MTU is shown as %d", size, s.PathMTU)
		}
	}
}

// TestPathByNumber is TestPathTakesLess for queue pairs that are connected by number.
func TestPathByNumber(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	setPass(w, 1300)
	n := enginetest.NumberPairIn(w, false)
	n.QA.ReadyToReceive(n.QB, enginetest.Attempt)
	n.QA.ReadyToSend(enginetest.Attempt)
	n.QB.ReadyToReceive(n.QA, enginetest.Attempt)
	n.QB.ReadyToSend(enginetest.Attempt)
	n.Exchange(10)
	setPass(w, 1300)
	n.Exchange(50000)
	if w.PipeA.Lost+w.PipeA.Fragmented+w.PipeB.Lost+w.PipeB.Fragmented > 0 {
		t.Errorf("lost %d and %d, fragmented %d and %d", w.PipeA.Lost, w.PipeB.Lost, w.PipeA.Fragmented, w.PipeB.Fragmented)
	}
}

// TestPathComesToTakeLess: when a path's MTU shrinks, connections continue, with fragments if necessary, and later
// ones have segments that pass.
func TestPathComesToTakeLess(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	a, b := w.Pair(false, nil)
	load := enginetest.Load{Ops: 60, MaxSize: 40000}
	w.NewTraffic(a, b, load).Run(10 * time.Second)
	setPass(w, 1300)
	w.NewTraffic(a, b, load).Run(20 * time.Second)
	if w.PipeA.Lost == 0 || w.PipeA.Fragmented == 0 {
		t.Errorf("lost %d, fragmented %d: the path was not too small", w.PipeA.Lost, w.PipeA.Fragmented)
	}
	w.Pass(2 * time.Second)
	a, b = w.Pair(false, nil)
	setPass(w, 1300)
	w.NewTraffic(a, b, load).Run(10 * time.Second)
	if w.PipeA.Lost+w.PipeA.Fragmented+w.PipeB.Lost+w.PipeB.Fragmented > 0 {
		t.Errorf("a new connection: lost %d and %d, fragmented %d and %d", w.PipeA.Lost, w.PipeB.Lost, w.PipeA.Fragmented,
			w.PipeB.Fragmented)
	}
}

// TestUnansweredProbes: if no probe is answered, connecting works all the same.
func TestUnansweredProbes(t *testing.T) {
	for _, silent := range []string{"active", "passive", "both"} {
		w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
		if silent != "active" {
			w.PipeA.Refuse = 1
		}
		if silent != "passive" {
			w.PipeB.Refuse = 1
		}
		a, b := w.Pair(false, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 50, MaxSize: 40000}).Run(10 * time.Second)
	}
}

// TestProbesWithoutEnd: of a flood of probes, under any addresses, a bounded number is answered, and path
// MTUs are found when it is over.
func TestProbesWithoutEnd(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	const probes, most = 5000, 1000
	probe := make([]byte, 1172)
	(&wire.Encap{Type: wire.EncapProbe}).Put(probe)
	(&wire.PathProbe{Nonce: 7, Most: 1472}).Put(probe[wire.EncapLen:])
	before := w.PipeA.Sent
	for i := range probes {
		from := netip.AddrFrom4([4]byte{10, 0, 1 + byte(i>>8), byte(i)})
		w.PipeA.Inject(probe, port.PeerOf(netip.AddrPortFrom(from, enginetest.SocketPort)))
		w.A.Engine.Turn(w.Now())
	}
	if n := w.PipeA.Sent - before; n > most || n < most/2 {
		t.Errorf("%d of %d probes were answered, expected about %d", n, probes, most)
	}
	w.Pass(200 * time.Millisecond)
	setPass(w, 1300)
	w.Pair(false, nil)
	if w.PipeA.Fragmented+w.PipeB.Fragmented > 0 {
		t.Error("the path was not found")
	}
}
