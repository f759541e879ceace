package steer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/dpdk/loopback"
	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"
	"urdma/dpdk/udp"
	"urdma/wire"
	"urdma/wire/ibcm"

	"golang.org/x/sys/unix"
)

var (
	ours   = netip.MustParseAddr("10.0.0.1")
	ours6  = netip.MustParseAddr("fd00::1")
	theirs = netip.MustParseAddr("10.0.0.2")
)

// share lets workers share a port.
func share(p port.Port, workers int, own ...netip.Addr) (*Hub, *Port) {
	h := NewHub(workers, NewNumbers(workers), func(int) {})
	var first *Port
	for _, a := range own {
		if added := h.Add(p, a, false); first == nil {
			first = added
		}
	}
	return h, first
}

// TestConformance: worker 0's view of a shared port fulfils the contract of ports, with one queue and with
// one for each worker.
func TestConformance(t *testing.T) {
	const workers = 2
	for queues := 1; queues <= workers; queues++ {
		t.Run(fmt.Sprintf("%d queues", queues), func(t *testing.T) {
			porttest.Run(t, func(t *testing.T) *porttest.Pair {
				a, b := overMemif(t, queues, queues)
				_, sharedA := share(a, workers, ours)
				_, sharedB := share(b, workers, theirs)
				return &porttest.Pair{A: sharedA.For(0), B: sharedB.For(0), Interrupts: true,
					Step: func() { time.Sleep(50 * time.Microsecond) }}
			})
		})
	}
}

// packetTo makes a frame with a UDP datagram.
func packetTo(src, dst netip.AddrPort, payload ...byte) []byte {
	if dst.Addr().Is4() {
		b := make([]byte, wire.UDPHeaderLen+len(payload))
		var h wire.UDPHeader
		h.Init(wire.MAC{2, 0, 0, 0, 0, 2}, wire.MAC{2, 0, 0, 0, 0, 1}, src.Addr().As4(), dst.Addr().As4(), src.Port(),
			dst.Port())
		h.Put(b, len(payload), 1)
		copy(b[len(h):], payload)
		return b
	}
	b := make([]byte, wire.UDP6HeaderLen+len(payload))
	var h wire.UDP6Header
	h.Init(wire.MAC{2, 0, 0, 0, 0, 2}, wire.MAC{2, 0, 0, 0, 0, 1}, src.Addr().As16(), dst.Addr().As16(), src.Port(),
		dst.Port())
	h.Put(b, len(payload))
	copy(b[len(h):], payload)
	return b
}

func arp(a wire.ARP) []byte {
	b := make([]byte, 60)
	at := wire.PutEthernet(b, wire.Broadcast, wire.MAC{2, 0, 0, 0, 0, 2}, wire.EtherTypeARP)
	a.Put(b[at:])
	return b
}

func datagramFor(n wire.QPN) []byte {
	b := make([]byte, wire.DatagramLen)
	(&wire.Datagram{Dst: n, Src: 5}).Put(b)
	return b
}

func requestFor(n wire.QPN) []byte {
	b := make([]byte, 200)
	at := (&wire.TRP{Op: wire.OpRequest}).Put(b)
	size, err := (&wire.TRPConnect{HasExt: true, Ext: wire.TRPExtension{QPN: 7, Target: n, Cookie: 1}}).Put(b[at:])
	if err != nil {
		panic(err)
	}
	return b[:at+size]
}

// TestWhoseFrame: each kind of frame finds its worker.
func TestWhoseFrame(t *testing.T) {
	h, p := share(loopback.Open("lo", [6]byte{}, 1500, ours), 3, ours, ours6)
	for number, worker := range map[uint16]int{7174: 2, 5000: 1} {
		if !h.numbers.Of(worker).Take(number) {
			t.Fatalf("port number %d is taken", number)
		}
	}
	at := func(a netip.Addr, number uint16) netip.AddrPort { return netip.AddrPortFrom(a, number) }
	group := netip.MustParseAddr("239.1.2.3")
	igmp := packetTo(at(theirs, 1), at(group, 2))
	igmp[wire.EthernetLen+9] = wire.ProtoIGMP
	icmp := packetTo(at(theirs, 1), at(ours, 2))
	icmp[wire.EthernetLen+9] = 1
	advert := packetTo(at(netip.MustParseAddr("fd00::2"), 1), at(ours6, 2), make([]byte, 24)...)
	advert[wire.EthernetLen+6], advert[wire.EthernetLen+wire.IPv6Len] = wire.ProtoICMPv6, wire.ICMPv6Advertise
	ask := append([]byte(nil), advert...)
	ask[wire.EthernetLen+wire.IPv6Len] = wire.ICMPv6Solicit
	them := wire.IPv4(theirs.As4())
	for _, c := range []struct {
		name  string
		frame []byte
		want  int
	}{
		{"a connection", packetTo(at(theirs, 9), at(ours, 7174)), 2},
		{"a connection of IPv6", packetTo(at(netip.MustParseAddr("fd00::2"), 9), at(ours6, 5000)), 1},
		{"a number nobody has", packetTo(at(theirs, 9), at(ours, 7175)), 0},
		{"a datagram", packetTo(at(theirs, 30034), at(ours, 30034), datagramFor(8)...), 0},
		{"a datagram to a group", packetTo(at(theirs, 30034), at(group, 30034), datagramFor(8)...), everyone},
		{"a management datagram", packetTo(at(theirs, 30034), at(ours, 30034), datagramFor(1)...), 0},
		{"a request by number", packetTo(at(theirs, 9), at(ours, 30034), requestFor(7)...), 1},
		{"a cut datagram", packetTo(at(theirs, 30034), at(ours, 30034), datagramFor(8)[:3]...), 0},
		{"no payload", packetTo(at(theirs, 30034), at(ours, 30034)), 0},
		{"an ARP request", arp(wire.ARP{Op: wire.ARPRequest, SenderIP: them, TargetIP: ours.As4()}), 0},
		{"an ARP reply", arp(wire.ARP{Op: wire.ARPReply, SenderIP: them, TargetIP: ours.As4()}), everyone},
		{"a gratuitous ARP", arp(wire.ARP{Op: wire.ARPRequest, SenderIP: them, TargetIP: them}), everyone},
		{"who has our address", arp(wire.ARP{Op: wire.ARPReply, SenderIP: ours.As4(), TargetIP: ours.As4()}), 0},
		{"a group query", igmp, everyone},
		{"an echo request", icmp, 0},
		{"a neighbour's advertisement", advert, everyone},
		{"a neighbour's question", ask, 0},
		{"a runt", make([]byte, 5), 0},
		{"another protocol", append(make([]byte, 12), 0x88, 0xb5, 1, 2), 0},
	} {
		if got := p.frame(c.frame); got != c.want {
			t.Errorf("%s is for worker %d, expected %d", c.name, got, c.want)
		}
	}
	encap := func(kind wire.EncapType, number uint16, b ...byte) []byte {
		head := make([]byte, wire.EncapLen)
		(&wire.Encap{Type: kind, Dst: number}).Put(head)
		return append(head, b...)
	}
	for _, c := range []struct {
		name   string
		packet []byte
		want   int
	}{
		{"a connection", encap(wire.EncapTRP, 7174, 1, 2, 3), 2},
		{"a datagram", encap(wire.EncapTRP, 30034, datagramFor(7)...), 1},
		{"a probe", encap(wire.EncapProbe, 0), 0},
		{"its answer", encap(wire.EncapAnswer, 0), everyone},
		{"nothing", nil, 0},
	} {
		if got := p.payload(c.packet); got != c.want {
			t.Errorf("%s over a socket is for worker %d, expected %d", c.name, got, c.want)
		}
	}
}

// overSockets opens a udp port with a socket for each worker, and returns its address.
func overSockets(t *testing.T, workers int, filter []unix.SockFilter) (port.Port, netip.AddrPort) {
	t.Helper()
	for number := uint16(40000); ; number++ {
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), number)
		p, err := udp.Open(udp.Options{Address: at, MTU: 1500, Sockets: workers, Filter: filter})
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		if p.Queues() != workers {
			t.Skip("this kernel does not share datagrams out among sockets")
		}
		return p, at
	}
}

// TestSocketFilter: each datagram reaches the socket of its worker if the worker has chosen the port
// number; any other datagram reaches only worker 0's socket or that of its number.
func TestSocketFilter(t *testing.T) {
	const workers = 3
	h := NewHub(workers, NewNumbers(workers), func(int) {})
	p, at := overSockets(t, workers, SocketFilter(workers))
	from, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	encap := func(kind wire.EncapType, number uint16, b ...byte) []byte {
		head := make([]byte, wire.EncapLen)
		(&wire.Encap{Type: kind, Dst: number}).Put(head)
		return append(head, b...)
	}
	uc := make([]byte, wire.MaxUCLen)
	(&wire.UC{Dst: 7}).Put(uc)
	padded := encap(wire.EncapPadded, 50000, 1, 2, 3, 0, 0, 0, 2)
	for number := uint16(50000); number < 50000+workers; number++ {
		h.numbers.Of(wire.WorkerOf(uint32(number), workers)).Take(number)
	}
	for _, b := range [][]byte{
		encap(wire.EncapTRP, 50000, 1), encap(wire.EncapTRP, 50001, 1), encap(wire.EncapTRP, 50002, 1), padded,
		encap(wire.EncapTRP, wire.DatagramPort, datagramFor(7)...),
		encap(wire.EncapTRP, wire.DatagramPort, datagramFor(8)...),
		encap(wire.EncapTRP, wire.DatagramPort, datagramFor(1)...),
		encap(wire.EncapTRP, wire.DatagramPort, datagramFor(7)[:3]...),
		encap(wire.EncapTRP, wire.DatagramPort, uc...), encap(wire.EncapProbe, 0, 1), {1}, {1, 2, 3, 4, 5, 6, 7},
	} {
		if _, err := from.Write(b); err != nil {
			t.Fatal(err)
		}
		want := (&Port{hub: h}).payload(b)
		if got := whichQueue(t, p, b); got != want {
			t.Errorf("% x reached worker %d, expected %d", b, got, want)
		}
	}
}

// TestNothingAllocated: finding the worker of a data packet allocates nothing.
func TestNothingAllocated(t *testing.T) {
	h, p := share(loopback.Open("lo", [6]byte{}, 1500, ours), 2, ours)
	uc := make([]byte, wire.MaxUCLen)
	(&wire.UC{Dst: 7}).Put(uc)
	at := func(number uint16) netip.AddrPort { return netip.AddrPortFrom(ours, number) }
	for what, frame := range map[string][]byte{"a connection's": packetTo(netip.AddrPortFrom(theirs, 9), at(7174), 1),
		"a datagram":                 packetTo(at(9), at(wire.DatagramPort), datagramFor(8)...),
		"an unreliable connection's": packetTo(at(9), at(wire.DatagramPort), uc...)} {
		if n := testing.AllocsPerRun(100, func() { p.worker(frame) }); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	head := make([]byte, 64) // of RoCEv2, for no queue pair
	if n := testing.AllocsPerRun(100, func() { h.packet(head, false) }); n != 0 {
		t.Errorf("a packet of RoCEv2: %v allocations", n)
	}
}

// whichQueue waits for a packet, and returns the queue at which it arrives.
func whichQueue(t *testing.T, p port.Port, b []byte) int {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for i := range p.Queues() {
			var one [1]port.Packet
			if q := p.Queue(i); q.Rx(one[:]) == 1 {
				if !bytes.Equal(one[0].Data, b) {
					t.Errorf("% x arrived, expected % x", one[0].Data, b)
				}
				q.Free(one[:])
				return i
			}
		}
	}
	t.Fatal("nothing has arrived for a minute")
	return 0
}

// TestOwnQueues: if the port has a queue for each worker, each worker uses its own queue, passes on packets
// for others, and packets between workers do not leave through the port.
func TestOwnQueues(t *testing.T) {
	const workers = 2
	under, at := overSockets(t, workers, SocketFilter(workers))
	if _, err := udp.Open(udp.Options{Address: at, Sockets: workers, Filter: SocketFilter(workers)}); !errors.Is(err,
		unix.EADDRINUSE) {
		t.Errorf("another port at %v: %v, expected EADDRINUSE", at, err)
	}
	peer, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	_, p := share(under, workers, at.Addr())
	p.Renumber(ours)                // the peer's packet has the socket's port number
	p.hub.numbers.Of(1).Take(50000) // a program's choice: the filter sends it to worker 0
	to := func(a netip.AddrPort, number uint16) port.Packet {
		head := make([]byte, wire.EncapLen)
		(&wire.Encap{Type: wire.EncapTRP, Src: 1, Dst: number}).Put(head)
		return port.Packet{Data: head, Peer: port.PeerOf(a)}
	}
	other := peer.LocalAddr().(*net.UDPAddr).AddrPort()
	inside := netip.AddrPortFrom(ours, at.Port())
	one := p.For(1).Queue(0)
	out := make([]port.Packet, 4)
	if one.Alloc(out) != len(out) {
		t.Fatal("no buffers")
	}
	for i, w := range []port.Packet{to(other, 7), to(inside, 50000), to(inside, 50002), to(other, 8)} {
		out[i].Data, out[i].Peer = out[i].Data[:copy(out[i].Data, w.Data)], w.Peer
	}
	if n := one.Tx(out); n != len(out) {
		t.Fatalf("Tx took %d of %d", n, len(out))
	}
	one.Flush()
	for _, number := range []uint16{7, 8} {
		b := make([]byte, 100)
		_ = peer.SetReadDeadline(time.Now().Add(time.Minute))
		n, from, err := peer.ReadFromUDPAddrPort(b)
		if want := to(other, number).Data; err != nil || from != at || !bytes.Equal(b[:n], want) {
			t.Errorf("the peer has % x from %v (%v), expected % x from %v", b[:n], from, err, want, at)
		}
	}
	if _, err := peer.WriteToUDPAddrPort(to(other, 50000).Data, at); err != nil {
		t.Fatal(err)
	}
	got := [workers]int{}
	for end := time.Now().Add(time.Minute); got != [workers]int{1, 1} &&
		time.Now().Before(end); time.Sleep(time.Millisecond) {
		for w := range workers {
			var burst [8]port.Packet
			q := p.For(w).Queue(0)
			n := q.Rx(burst[:])
			for i := range burst[:n] {
				if in := burst[i].Flags.Has(port.RxInside); in != (w == 0) {
					t.Errorf("worker %d has % x, from inside: %v", w, burst[i].Data, in)
				}
			}
			q.Free(burst[:n])
			got[w] += n
		}
	}
	if got != [workers]int{1, 1} {
		t.Errorf("the workers have %d packets, expected one each", got)
	}
	if all := [workers]Counts{p.hub.Counts(0), p.hub.Counts(1)}; all != [workers]Counts{{Received: 1, HandedOn: 1}, {}} {
		t.Errorf("%+v, expected that worker 0 received one packet and handed it on", all)
	}
}

// TestOrder: packets passed on by another worker come after those in the worker's own queue at that time,
// and are not delayed by a queue that always has more.
func TestOrder(t *testing.T) {
	const workers = 2
	under, at := overSockets(t, workers, SocketFilter(workers))
	_, p := share(under, workers, at.Addr())
	p.hub.numbers.Of(1).Take(50000) // a program's choice: the filter sends it to worker 0
	p.hub.numbers.Of(1).Take(50001)
	peer, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	to := func(number uint16) {
		head := make([]byte, wire.EncapLen)
		(&wire.Encap{Type: wire.EncapTRP, Src: 1, Dst: number}).Put(head)
		if _, err := peer.Write(head); err != nil {
			t.Fatal(err)
		}
	}
	handOver := func() {
		var none [1]port.Packet
		for end := time.Now().Add(time.Minute); p.rings[0][1].full.len() == 0; time.Sleep(time.Millisecond) {
			if p.For(0).Queue(0).Rx(none[:]); time.Now().After(end) {
				t.Fatal("worker 0 hands nothing over")
			}
		}
	}
	burst := make([]port.Packet, 8)
	receive := func(p port.Port, room int) (numbers []uint16) {
		q := p.Queue(0)
		n := q.Rx(burst[:room])
		for i := range burst[:n] {
			var e wire.Encap
			if err := e.Parse(burst[i].Data); err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, e.Dst)
		}
		q.Free(burst[:n])
		return numbers
	}
	for range 4 {
		to(50001)
		to(50000)
		handOver()
		if got := receive(p.For(1), 8); !slices.Equal(got, []uint16{50001, 50000}) {
			t.Fatalf("received %v", got)
		}
	}
	to(50000)
	handOver()
	for range 4 {
		to(50001)
	}
	if got := append(receive(p.For(1), 1), receive(p.For(1), 1)...); !slices.Equal(got, []uint16{50001, 50000}) {
		t.Errorf("received %v beside a queue that has more", got)
	}
}

// TestNumbers: one worker has a number, also for a while after it was released.
func TestNumbers(t *testing.T) {
	n := NewNumbers(2)
	a, b := n.Of(0), n.Of(1)
	first, again := b.Take(100), b.Take(100)
	if !first || !again || a.Take(100) || !a.Elsewhere(100) || b.Elsewhere(100) {
		t.Error("worker 1 has the number, and nobody else")
	}
	b.Give(100)
	if a.Take(100) {
		t.Error("worker 1 has the number still once")
	}
	b.Give(100)
	if !a.Elsewhere(100) || n.of(100) != 1 {
		t.Error("worker 1 may have the number again in a moment")
	}
	if !a.Take(100) || a.Elsewhere(100) || n.of(100) != 0 {
		t.Error("worker 0 has taken the number")
	}
	if a.Chooses(7) || !b.Chooses(7) {
		t.Error("worker 1 alone chooses number 7")
	}
}

// send lets a worker send a frame.
func send(t *testing.T, q port.Queue, b []byte) {
	t.Helper()
	var one [1]port.Packet
	for end := time.Now().Add(time.Minute); q.Alloc(one[:]) == 0; q.Flush() {
		if time.Now().After(end) {
			t.Error("no buffer for a minute")
			return
		}
	}
	one[0].Data = one[0].Data[:copy(one[0].Data, b)]
	if q.Tx(one[:]) != 1 {
		t.Error("the queue takes no packet")
	}
	q.Flush()
}

// TestBetweenWorkers: workers send to each other concurrently; packets arrive complete and in order unless
// rings are full, and dropped packets are counted. With -race every hand-over is checked.
func TestBetweenWorkers(t *testing.T) {
	const workers, each = 3, 3000
	_, p := share(loopback.Open("lo", [6]byte{}, 1500, ours), workers, ours)
	for w := range workers {
		p.hub.numbers.Of(w).Take(uint16(1000 + w))
	}
	var all sync.WaitGroup
	var got atomic.Uint64
	for w := range workers {
		all.Go(func() {
			q := p.For(w).Queue(0)
			last := [workers]uint32{}
			var burst [32]port.Packet
			for i := uint32(1); i <= each || got.Load()+p.Stats().RxDropped < workers*(workers-1)*each; i++ {
				for to := range workers {
					if to == w || i > each {
						continue
					}
					b := make([]byte, 8, 300)
					binary.BigEndian.PutUint32(b, uint32(w))
					binary.BigEndian.PutUint32(b[4:], i)
					send(t, q, packetTo(netip.AddrPortFrom(ours, uint16(1000+w)), netip.AddrPortFrom(ours, uint16(1000+to)),
						b[:8+i%200]...))
				}
				n := q.Rx(burst[:])
				for k := range burst[:n] {
					v := &burst[k]
					from, number := whose(t, v)
					if number <= last[from] || !v.Flags.Has(port.RxInside|port.RxUDPGood) {
						t.Errorf("worker %d: packet %d of worker %d after %d, flags %x", w, number, from, last[from], v.Flags)
					}
					last[from] = number
				}
				q.Free(burst[:n])
				got.Add(uint64(n))
			}
		})
	}
	all.Wait()
	if got.Load() == 0 {
		t.Error("nothing has arrived")
	}
}

// whose identifies the sender of a packet of TestBetweenWorkers, and the packet.
func whose(t *testing.T, v *port.Packet) (from int, number uint32) {
	b := v.Data[wire.UDPHeaderLen:]
	from, number = int(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:])
	if len(b) != int(8+number%200) {
		t.Errorf("packet %d of worker %d has %d bytes", number, from, len(b))
	}
	return from, number
}

// TestFullRing: a worker that does not read loses only its own packets, and nobody waits for it.
func TestFullRing(t *testing.T) {
	_, p := share(loopback.Open("lo", [6]byte{}, 1500, ours), 2, ours)
	p.hub.numbers.Of(1).Take(1001)
	q := p.For(0).Queue(0)
	for range slots + 7 {
		send(t, q, packetTo(netip.AddrPortFrom(ours, 1), netip.AddrPortFrom(ours, 1001)))
	}
	if n := p.Stats().RxDropped; n != 7 {
		t.Errorf("%d packets are said to be dropped, expected 7", n)
	}
	var burst [slots]port.Packet
	r := p.For(1).Queue(0)
	if _, armed := r.ArmRx(); armed {
		t.Error("a queue with packets lets its worker sleep")
	}
	if n := r.Rx(burst[:]); n != slots {
		t.Errorf("%d packets, expected %d", n, slots)
	}
	r.Free(burst[:])
	if fd, armed := r.ArmRx(); fd != port.Woken || !armed {
		t.Errorf("an empty queue: descriptor %d, armed %v", fd, armed)
	}
}

// TestMutations: whatever a packet says in any of its bytes, and however short it is, it has one of our workers or all,
// a peer's queue, and no conversion to another port fails.
func TestMutations(t *testing.T) {
	const workers = 3
	at := func(a netip.Addr, number uint16) netip.AddrPort { return netip.AddrPortFrom(a, number) }
	request := &ibcm.Message{Kind: ibcm.REQ, Service: ibcm.TCPService(7000)}
	for _, six := range []bool{false, true} {
		own, other, from := ours, netip.MustParseAddr("10.0.1.1"), theirs
		if six {
			own, other, from = ours6, netip.MustParseAddr("fd01::1"), netip.MustParseAddr("fd00::2")
		}
		for _, roce := range []bool{false, true} {
			h := NewHub(workers, NewNumbers(workers), func(int) {})
			lo := loopback.Open("lo", [6]byte{}, 1500, own)
			frames, sockets := h.Add(lo, own, roce), h.Add(payloads{lo}, other, roce)
			for _, payload := range [][]byte{datagramFor(8), requestFor(7), packetFor(9, nil), packetFor(ibcm.QP, request)} {
				mutate(packetTo(at(from, 30034), at(own, map[bool]uint16{false: 30034, true: 4791}[roce]), payload...), func(b []byte) {
					if w := frames.worker(b); w < everyone || w >= workers {
						t.Errorf("% x is for worker %d", b, w)
					}
					if q := max(PeerQueue(b, workers), PeerQueueRoCE(b, workers)); q < 0 || q >= workers {
						t.Errorf("% x is for queue %d", b, q)
					}
					_, _, _ = frames.inside(&port.Packet{Data: b})
					_, _ = frames.queues[0].as(sockets, port.Packet{Data: b})
				})
				encap := make([]byte, wire.EncapLen, wire.EncapLen+len(payload))
				(&wire.Encap{Src: 9, Dst: 30034}).Put(encap)
				mutate(append(encap, payload...), func(b []byte) {
					if w := sockets.worker(b); w < everyone || w >= workers {
						t.Errorf("% x is for worker %d", b, w)
					}
					_, _ = sockets.queues[0].as(frames, port.Packet{Data: b, Peer: port.PeerOf(at(own, 9))})
				})
			}
		}
	}
}

// mutate calls see with each byte of a packet changed in several ways, and with each of its beginnings.
func mutate(b []byte, see func(b []byte)) {
	for i := range b {
		for _, v := range []byte{0, 1, b[i] + 1, b[i] - 1, b[i] ^ 0x10, b[i] ^ 0x80, 0x0f, 0x7f, 0xff} {
			changed := bytes.Clone(b)
			changed[i] = v
			see(changed)
			see(changed[:min(len(b), i+8)])
		}
		see(bytes.Clone(b[:i]))
	}
}
