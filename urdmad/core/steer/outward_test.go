package steer

import (
	"net/netip"
	"testing"
	"time"

	"urdma/dpdk/memif"
	"urdma/dpdk/port"
	"urdma/wire"
	"urdma/wire/roce"
)

// TestPeerQueue: a sender finds the worker for its frame if that worker chose the number; otherwise the
// frame is for the first worker.
func TestPeerQueue(t *testing.T) {
	theirs6, ours6 := netip.MustParseAddr("fd00::2"), netip.MustParseAddr("fd00::1")
	at := netip.AddrPortFrom
	uc := make([]byte, wire.MaxUCLen)
	(&wire.UC{Dst: 6}).Put(uc)
	toPair := make([]byte, 40)
	toPair[7] = 13
	options := packetTo(at(theirs, 9), at(ours, 50007))
	options = append(append(append([]byte(nil), options[:wire.EthernetLen+20]...), 1, 1, 1, 1),
		options[wire.EthernetLen+20:]...)
	options[wire.EthernetLen] = 4<<4 | 6
	hops := packetTo(at(theirs6, 9), at(ours6, 50007))
	hops[wire.EthernetLen+6] = 0
	tcp := packetTo(at(theirs, 9), at(ours, 50007))
	tcp[wire.EthernetLen+9] = 6
	const unknown = 0
	for _, c := range []struct {
		name         string
		frame        []byte
		number, roce uint32
	}{
		{"a connection", packetTo(at(theirs, 9), at(ours, 50007)), 50007, unknown},
		{"a connection with options", options, 50007, unknown},
		{"a connection of IPv6", packetTo(at(theirs6, 9), at(ours6, 50006)), 50006, unknown},
		{"a datagram", packetTo(at(theirs, 30034), at(ours, wire.DatagramPort), datagramFor(13)...), 13, unknown},
		{"a management datagram", packetTo(at(theirs, 30034), at(ours, wire.DatagramPort), datagramFor(1)...), unknown,
			unknown},
		{"an unreliable connection", packetTo(at(theirs, 30034), at(ours, wire.DatagramPort), uc...), 6, unknown},
		{"a cut datagram", packetTo(at(theirs, 30034), at(ours, wire.DatagramPort), datagramFor(13)[:wire.TRPLen]...),
			unknown, unknown},
		{"a packet of RoCEv2", packetTo(at(theirs, 50007), at(ours, roce.Port), toPair...), roce.Port, 13},
		{"one of RoCEv2 over IPv6", packetTo(at(theirs6, 50007), at(ours6, roce.Port), toPair...), roce.Port, 13},
		{"ARP", arp(wire.ARP{Op: wire.ARPRequest}), unknown, unknown},
		{"TCP", tcp, unknown, unknown},
		{"extension headers", hops, unknown, unknown},
	} {
		for queues := 1; queues <= 8; queues++ {
			if got, want := PeerQueue(c.frame, queues), wire.WorkerOf(c.number, queues); got != want {
				t.Errorf("%s is for queue %d of %d, expected %d", c.name, got, queues, want)
			}
			if got, want := PeerQueueRoCE(c.frame, queues), wire.WorkerOf(c.roce, queues); c.roce != unknown && got != want {
				t.Errorf("%s is for queue %d of %d, expected %d", c.name, got, queues, want)
			}
		}
		for n := range c.frame { // a peer may have changed the lengths of its headers
			cut := append([]byte(nil), c.frame[:n]...)
			PeerQueue(cut, 8)
			PeerQueueRoCE(cut, 8)
			for i := range cut {
				cut[i] = 0xff
			}
			PeerQueue(cut, 8)
			PeerQueueRoCE(cut, 8)
		}
	}
}

// overMemif opens the ends of a memif with a queue for each worker.
func overMemif(t *testing.T, server, client int) (a, b port.Port) {
	t.Helper()
	socket := t.TempDir() + "/m.sock"
	open := func(name string, serves bool, workers int) port.Port {
		p, err := memif.Open(memif.Options{Name: name, SocketPath: socket, Server: serves, Queues: workers, Ring: PeerQueue})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	a, b = open("a", true, server), open("b", false, client)
	for end := time.Now().Add(time.Minute); !a.Link() || !b.Link(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the link stays down")
		}
	}
	return a, b
}

// TestOverMemif: over a memif each worker receives its packets in its own ring, whichever worker of the
// peer sent them and however many workers the peer has.
func TestOverMemif(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {3, 2}, {2, 8}, {1, 2}, {2, 1}} {
		under, peer := overMemif(t, n[0], n[1])
		a, b := newEnd(under, n[0], ours), newEnd(peer, n[1], theirs)
		for _, way := range [][2]*end{{a, b}, {b, a}} {
			from, to := way[0], way[1]
			for w := range from.workers {
				for number := uint16(50000); number < 50016; number++ {
					to.p.hub.numbers.Of(wire.WorkerOf(uint32(number), to.workers)).Take(number)
					send(t, from.p.For(w).Queue(0), packetTo(netip.AddrPortFrom(from.own, 1), netip.AddrPortFrom(to.own, number)))
				}
			}
			for w := range to.workers {
				var burst [64]port.Packet
				q := to.p.For(w).Queue(0)
				got := 0
				for n := 1; n > 0; got += n {
					n = q.Rx(burst[:])
					q.Free(burst[:n])
				}
				want := 0
				for number := range 16 {
					if wire.WorkerOf(uint32(50000+number), to.workers) == w {
						want += from.workers
					}
				}
				if c := to.p.hub.Counts(w); got != want || c != (Counts{Received: uint64(want)}) {
					t.Errorf("workers %v: worker %d of %v has %d packets, expected %d, %+v", n, w, to.own, got, want, c)
				}
			}
		}
	}
}

// end is one end of a memif, shared by workers.
type end struct {
	p       *Port
	workers int
	own     netip.Addr
}

func newEnd(under port.Port, workers int, own netip.Addr) *end {
	_, p := share(under, workers, own)
	return &end{p, workers, own}
}

// BenchmarkPeerQueue measures the choice of a ring for a frame.
func BenchmarkPeerQueue(b *testing.B) {
	frame := packetTo(netip.AddrPortFrom(theirs, 9), netip.AddrPortFrom(ours, 50007), make([]byte, 100)...)
	for b.Loop() {
		PeerQueue(frame, 2)
	}
}
