package trp_test

import (
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// rebind makes A's packets come from another socket, and drops packets to the old one: a network address
// translator has changed its mapping.
func rebind(w *enginetest.World, to func(*port.Peer)) {
	to(&w.PipeB.From)
	to(&w.PipeB.To)
}

// TestPeerBoundAnew: a connection continues if its peer's packets come from another port number, and ends if they
// come from another address.
func TestPeerBoundAnew(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	a, b := w.Pair(false, nil)
	load := enginetest.Load{Ops: 50, MaxSize: 40000}
	w.NewTraffic(a, b, load).Run(10 * time.Second)
	for number := uint16(40000); number < 40005; number++ {
		rebind(w, func(p *port.Peer) { p.Port = number })
		w.NewTraffic(a, b, load).Run(10 * time.Second)
	}
	stray := w.B.Engine.TRP.Stats.StrayAddress
	rebind(w, func(p *port.Peer) { p.Low++ })
	b.Client.Event(abi.CMDisconnected, 30*time.Second)
	if w.B.Engine.TRP.Stats.StrayAddress == stray {
		t.Error("packets from another address are not counted")
	}
}

// TestForgedSocket: packets from another port number of the peer's address have no effect without the cookie, or with
// an impossible PSN or acknowledgement.
func TestForgedSocket(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	a, b := w.Pair(false, nil)
	load := enginetest.Load{Ops: 20, MaxSize: 10000}
	w.NewTraffic(a, b, load).Run(10 * time.Second)
	last := w.PipeB.Last()
	for name, spoil := range map[string]func(*wire.TRP){
		"cookie": func(h *wire.TRP) { h.Cookie++ },
		"PSN":    func(h *wire.TRP) { h.PSN = h.PSN.Add(1 << 20) },
		"ACK":    func(h *wire.TRP) { h.Ack = h.Ack.Add(1 << 20) },
	} {
		forged := append([]byte(nil), last...)
		var h wire.TRP
		if _, err := h.Parse(forged[wire.EncapLen:]); err != nil {
			t.Fatal(err)
		}
		spoil(&h)
		h.Put(forged[wire.EncapLen:])
		stray := w.B.Engine.TRP.Stats.StrayAddress
		w.PipeB.Inject(forged, port.PeerAt(w.PipeB.From.IP(), 666))
		w.Pass(time.Millisecond)
		if w.B.Engine.TRP.Stats.StrayAddress == stray {
			t.Errorf("%s: the forged packet is not counted as a stray", name)
		}
		w.NewTraffic(a, b, load).Run(10 * time.Second) // packets to the forger would be lost
	}
}

// TestSparseAcknowledgements: over ports of datagrams a stream of Writes has fewer acknowledgements than Writes, and
// a single Write does not wait for its own.
func TestSparseAcknowledgements(t *testing.T) {
	const size = 64 << 10
	w := enginetest.New(t, enginetest.Options{Seed: 1, Datagrams: true})
	x, y := w.Pair(false, nil)
	src, dst := x.Client.Register(size, enginetest.ReadWrite), y.Client.Register(size, enginetest.ReadWrite)
	wr := enginetest.Write(1, dst, 0)
	var longest time.Duration
	for range 20 {
		began := w.Now()
		x.Post(wr, src.SGE(0, size))
		w.Until("completion", time.Second, func() bool { return len(x.Send.Poll()) == 1 })
		longest = max(longest, time.Duration(w.Now()-began))
	}
	if longest > 40*time.Microsecond {
		t.Errorf("a Write alone took %v", longest)
	}
	const messages, depth = 400, 60
	before := w.PipeB.Sent
	for posted, done := 0, 0; done < messages; done += len(x.Send.Poll()) {
		for ; posted < messages && posted-done < depth; posted++ {
			x.Post(wr, src.SGE(0, size))
		}
		w.Step()
	}
	acks := w.PipeB.Sent - before
	t.Logf("a Write alone took %v at most; %d acknowledgements of %d Writes", longest, acks, messages)
	if acks*3 > messages {
		t.Errorf("%d acknowledgements of %d Writes", acks, messages)
	}
}
