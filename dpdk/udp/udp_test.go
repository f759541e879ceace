package udp

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port"
	"urdma/dpdk/port/porttest"

	"golang.org/x/sys/unix"
)

// congested is CE (RFC 3168).
const congested = 3

// tested is a port with its only queue and its socket's address.
type tested struct {
	*Port
	*queue
	at port.Peer
}

// Stats is the port's.
func (p tested) Stats() port.Stats { return p.Port.Stats() }

// open1 opens a port on the loopback interface, with a port number chosen by the kernel.
func open1(t *testing.T, mtu int) tested {
	t.Helper()
	return openFor(t, mtu)
}

func openFor(t testing.TB, mtu int) tested {
	t.Helper()
	return openAt(t, netip.MustParseAddrPort("127.0.0.1:0"), mtu)
}

func openAt(t testing.TB, at netip.AddrPort, mtu int) tested {
	t.Helper()
	p, err := Open(Options{Address: at, MTU: mtu, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	q := p.(*Port).queues[0]
	a, err := unix.Getsockname(q.own.fd)
	if err != nil {
		t.Fatal(err)
	}
	bound := netip.AddrPortFrom(at.Addr(), portOf(a))
	return tested{p.(*Port), q, port.PeerOf(bound)}
}

// TestConformance runs the suite with all offloads of the kernel, and without each.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name     string
		gso, gro bool
	}{{"offloads", true, true}, {"GSO alone", true, false}, {"GRO alone", false, true}, {"none", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			porttest.Run(t, func(t *testing.T) *porttest.Pair {
				a, b := open1(t, 1500), open1(t, 1500)
				for _, p := range []tested{a, b} {
					p.queue.gso.Store(p.queue.gso.Load() && c.gso)
					if !c.gro {
						_ = unix.SetsockoptInt(p.queue.own.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 0)
					}
				}
				return &porttest.Pair{A: a.Port, B: b.Port, PeerA: a.at, PeerB: b.at,
					Step:  func() { time.Sleep(10 * time.Microsecond) },
					Lossy: true, Interrupts: true}
			})
		})
	}
}

// TestOffloads: a burst to one peer is one message on both sides, and the datagrams come out as they were
// sent: of equal length, a shorter one that ends the message, longer ones that begin another, and one to
// another peer.
func TestOffloads(t *testing.T) {
	a, b, c := open1(t, 1500), open1(t, 1500), open1(t, 1500)
	if !a.gso.Load() || !b.gro.Load() {
		t.Skip("this kernel has no UDP_SEGMENT or no UDP_GRO")
	}
	type datagram struct {
		to   tested
		size int
	}
	sizes := []datagram{{b, 100}, {b, 100}, {b, 50}, {b, 50}, {b, 1472}, {b, 1472}, {c, 1472}, {c, 7}, {b, 1472}}
	wantMessages := []int{3, 1, 2, 2, 1}
	p := make([]port.Packet, len(sizes))
	if n := a.Alloc(p); n != len(p) {
		t.Fatalf("Alloc gave %d of %d", n, len(p))
	}
	for i, s := range sizes {
		p[i].Data, p[i].Peer = p[i].Data[:s.size], s.to.at
		for j := range p[i].Data {
			p[i].Data[j] = byte(i)
		}
	}
	a.Tx(p)
	if n := a.compose(true); n != len(wantMessages) {
		t.Fatalf("%d messages, want %d", n, len(wantMessages))
	}
	for i, want := range wantMessages {
		if got := a.queue.tx.msg[i].packets; got != want {
			t.Errorf("message %d has %d datagrams, want %d", i, got, want)
		}
	}
	a.Flush()
	for i, s := range sizes {
		got := receive(t, s.to)
		if len(got.Data) != s.size || got.Data[0] != byte(i) || got.Data[s.size-1] != byte(i) || got.Peer != a.at {
			t.Errorf("datagram %d: %d bytes of %d from %v", i, len(got.Data), got.Data[0], got.Peer)
		}
		s.to.Free([]port.Packet{got})
	}
	if st := a.Stats(); st.TxDropped != 0 || st.TxPackets != uint64(len(sizes)) {
		t.Errorf("stats %+v", st)
	}
}

// TestRenumber: packets with don't-fragment and a traffic class are sent together, too, and Renumber is
// called with the identification that the kernel gives each.
func TestRenumber(t *testing.T) {
	numbers := map[byte]uint16{}
	p, err := Open(Options{Address: netip.MustParseAddrPort("127.0.0.1:0"), ECN: true,
		Renumber: func(payload []byte, was, is uint16) {
			if numbers[payload[0]] != was {
				t.Errorf("packet %d has the number %d, not %d", payload[0], numbers[payload[0]], was)
			}
			numbers[payload[0]] = is
		}})
	if err != nil {
		t.Fatal(err)
	}
	a := tested{p.(*Port), p.(*Port).queues[0], port.Peer{}}
	defer a.Close()
	b, at := openECN(t, "127.0.0.1")
	to := tested{b, b.queues[0], port.PeerOf(at)}
	if !a.gso.Load() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	sizes := []int{1056, 1040, 1040, 1040, 1040, 40}
	put := func(first int) {
		for i, size := range sizes {
			var p [1]port.Packet
			if a.Alloc(p[:]) == 0 {
				t.Fatal("no buffer")
			}
			p[0].Data, p[0].Peer, p[0].Flags, p[0].Class = p[0].Data[:size], to.at, port.TxWhole, 0x68|capable
			p[0].Data[0] = byte(first + i)
			a.Tx(p[:])
		}
	}
	put(0)
	a.fragments(port.TxWhole)
	if n := a.compose(true); n != 2 || numbers[1] != 1 || numbers[2] != 0 || numbers[4] != 2 || numbers[5] != 3 {
		t.Errorf("%d messages, numbers %v", n, numbers)
	}
	a.queue.tx.single = 3 // as if the kernel had refused the first
	if n := a.compose(true); n != 4 || numbers[1] != 0 || numbers[4] != 1 || numbers[5] != 2 {
		t.Errorf("%d messages, of which three are of one, numbers %v", n, numbers)
	}
	a.Flush()
	for i, size := range sizes {
		got := receive(t, to)
		if len(got.Data) != size || int(got.Data[0]) != i || got.Class != 0x68|capable {
			t.Errorf("packet %d: %d bytes of %d, class %#x", i, len(got.Data), got.Data[0], got.Class)
		}
		to.Free([]port.Packet{got})
	}
}

// TestFullMessages: before the turn ends only messages are sent to which no packet can be added any more.
// Consecutive packets of the full size are one piece of memory, even after their slots were used in another
// order.
func TestFullMessages(t *testing.T) {
	a, b := open1(t, 1500), open1(t, 1500)
	if !a.gso.Load() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	const full = maxSend / 1472
	tx := &a.queue.tx
	for _, extra := range []int{1, 5, full - 1} {
		put(t, a, b, full+extra, 1472)
		if n := a.compose(false); n != 1 || tx.msg[0].packets != full || tx.hdr[0].Iovlen != 1 {
			t.Errorf("%d packets: %d messages, the first of %d packets in %d pieces, want one of %d in 1",
				full+extra, n, tx.msg[0].packets, tx.hdr[0].Iovlen, full)
		}
		put(t, a, b, 1, 100)
		if n := a.compose(false); n != 2 || tx.msg[1].packets != extra+1 {
			t.Errorf("%d packets and a short one: %d messages, the last of %d", full+extra, n, tx.msg[1].packets)
		}
		a.Flush()
		if tx.waiting() > 0 {
			t.Errorf("%d packets wait after Flush", tx.waiting())
		}
	}
}

// put queues n packets of a size without sending any.
func put(t *testing.T, from, to tested, n, size int) {
	t.Helper()
	p := make([]port.Packet, n)
	if got := from.Alloc(p); got != n {
		t.Fatalf("Alloc gave %d of %d", got, n)
	}
	for i := range p {
		from.queue.tx.queue = append(from.queue.tx.queue,
			outgoing{slot: int32(p[i].Ref - firstTransmit), length: int32(size), peer: to.at})
	}
}

// receive waits for one datagram.
func receive(t *testing.T, p tested) port.Packet {
	t.Helper()
	var one [1]port.Packet
	for end := time.Now().Add(time.Minute); p.Rx(one[:]) == 0; time.Sleep(10 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("nothing arrives")
		}
	}
	return one[0]
}

// TestRefusedSegmentation: a message that the kernel does not split is sent datagram by datagram, and after
// EIO no message is sent as one again.
func TestRefusedSegmentation(t *testing.T) {
	for _, c := range []struct {
		errno unix.Errno
		after bool
	}{{unix.EINVAL, true}, {unix.EIO, false}} {
		a, b := open1(t, 1500), open1(t, 1500)
		a.gso.Store(true)
		p := make([]port.Packet, 5)
		a.Alloc(p)
		for i := range p {
			p[i].Data, p[i].Peer = p[i].Data[:100+i/4], b.at
		}
		a.Tx(p)
		if n := a.compose(true); n != 2 {
			t.Fatalf("%d messages, want 2", n)
		}
		a.refused(c.errno)
		if a.gso.Load() != c.after {
			t.Errorf("%v: segmentation is %v", c.errno, a.gso.Load())
		}
		if n := a.compose(true); n != 5 {
			t.Errorf("%v: %d messages, want one for each datagram", c.errno, n)
		}
		a.Flush()
		for i := range p {
			if got := receive(t, b); len(got.Data) != 100+i/4 {
				t.Errorf("%v: datagram %d has %d bytes", c.errno, i, len(got.Data))
			}
		}
	}
}

// TestTooLong: a datagram longer than the path's MTU is dropped and counted, and later ones are sent.
func TestTooLong(t *testing.T) {
	a, b := open1(t, 0), open1(t, 0)
	a.room = 70000
	a.queue.tx.slots[0], a.queue.tx.slots[1] = make([]byte, 70000), make([]byte, 70000)
	p := make([]port.Packet, 2)
	a.Alloc(p)
	p[0].Data, p[0].Peer = p[0].Data[:66000], b.at
	p[1].Data, p[1].Peer = p[1].Data[:66], b.at
	a.Tx(p)
	a.Flush()
	if got := receive(t, b); len(got.Data) != 66 {
		t.Errorf("%d bytes arrived", len(got.Data))
	}
	if a.Stats().TxDropped != 1 {
		t.Errorf("stats %+v", a.Stats())
	}
}

// TestOverrun: datagrams for which the socket's buffer has no room are counted.
func TestOverrun(t *testing.T) {
	a, b := open1(t, 1500), open1(t, 1500)
	_ = unix.SetsockoptInt(b.queue.own.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	a.gso.Store(false) // the kernel counts messages
	sent := 0
	for range 100 {
		p := make([]port.Packet, 8)
		n := a.Alloc(p)
		for i := range p[:n] {
			p[i].Data, p[i].Peer = p[i].Data[:1400], b.at
			sent++
		}
		a.Tx(p[:n])
		a.Flush()
	}
	got := 0
	// the counter comes with the datagrams that arrive after the drop
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var p [32]port.Packet
		for n := b.Rx(p[:]); n > 0; n = b.Rx(p[:]) {
			b.Free(p[:n])
			got += n
		}
		st := b.Stats()
		if st.RxDropped != 0 && int(st.RxDropped)+got == sent {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("sent %d, received %d, counted as dropped %d", sent, got, st.RxDropped)
		}
		one := make([]port.Packet, 1)
		a.Alloc(one)
		one[0].Data, one[0].Peer = one[0].Data[:10], b.at
		a.Tx(one)
		a.Flush()
		sent++
	}
}

// TestAllow: datagrams from outside the listed networks are dropped and counted.
func TestAllow(t *testing.T) {
	a, b := open1(t, 1500), open1(t, 1500)
	send := func() {
		one := make([]port.Packet, 1)
		a.Alloc(one)
		one[0].Data, one[0].Peer = one[0].Data[:10], b.at
		a.Tx(one)
		a.Flush()
	}
	b.queue.allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.2/32")}
	var logged []string
	b.queue.log = func(message string, args ...any) { logged = append(logged, fmt.Sprint(message, args)) }
	send()
	send()
	var p [4]port.Packet
	n := 0
	for end := time.Now().Add(time.Minute); n == 0 && b.Stats().RxErrors < 2 &&
		time.Now().Before(end); time.Sleep(10 * time.Microsecond) {
		n = b.Rx(p[:])
	}
	if len(logged) != 1 || !strings.Contains(logged[0], a.at.Addr().String()) {
		t.Errorf("the log has of two datagrams %q, expected one line with the sender", logged)
	}
	if n != 0 || b.Stats().RxErrors != 2 || b.Stats().RxPackets != 0 {
		t.Errorf("%d datagrams, %+v", n, b.Stats())
	}
	b.queue.allow = append(b.queue.allow, netip.MustParsePrefix("127.0.0.0/8"))
	send()
	receive(t, b)
}

// openECN opens a port that reports traffic classes, with a free port number.
func openECN(t *testing.T, at string) (p *Port, bound netip.AddrPort) {
	t.Helper()
	for number := uint16(20_000); number < 21_000; number++ {
		bound = netip.AddrPortFrom(netip.MustParseAddr(at), number)
		if p, err := Open(Options{Address: bound, ECN: true}); err == nil {
			t.Cleanup(func() { p.Close() })
			return p.(*Port), bound
		}
	}
	t.Skip(at, "can't be bound to")
	return nil, bound
}

// TestGroups: a datagram to a group is received with the group's number and its traffic class, until the
// group is left, and wakes the worker that waits for the port; so do datagrams to the port itself.
func TestGroups(t *testing.T) {
	for at, groups := range map[string][2]string{"127.0.0.1": {"239.9.8.7", "239.9.8.6"},
		multicast6(t): {"ff15::987", "ff02::986"}} {
		if at == "" {
			continue
		}
		from, sender := openECN(t, at)
		to, own := openECN(t, at)
		send := func(to netip.AddrPort, class uint8) {
			p := make([]port.Packet, 1)
			from.queues[0].Alloc(p)
			p[0].Data, p[0].Peer, p[0].Flags, p[0].Class = p[0].Data[:100], port.PeerOf(to), port.TxWhole|port.TxAlone, class
			from.queues[0].Tx(p)
			from.queues[0].Flush()
		}
		expect := func(what string, group uint16, class uint8) {
			t.Helper()
			var p [2]port.Packet
			n := 0
			for end := time.Now().Add(time.Minute); n == 0; n = to.queues[0].Rx(p[:]) {
				if fd, armed := to.queues[0].ArmRx(); armed {
					_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
				}
				if time.Now().After(end) {
					t.Fatalf("%s: nothing came", what)
				}
			}
			if n != 1 || p[0].Group != group || p[0].Class != class || p[0].Peer != port.PeerOf(sender) ||
				len(p[0].Data) != 100 {
				t.Errorf("%s: %d packets, of group %d, class %#x, from %v", what, n, p[0].Group, p[0].Class, p[0].Peer)
			}
			to.queues[0].Free(p[:n])
		}
		groupAt := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(groups[i]), own.Port()) }
		for i := range groups {
			number, err := to.Join(0, groupAt(i).Addr())
			if err != nil || int(number) != i+1 {
				t.Fatalf("%s: number %d, %v", groups[i], number, err)
			}
		}
		send(groupAt(1), 0)
		expect("the second group", 2, capable)
		send(groupAt(0), 0x68|capable)
		expect("the first group", 1, 0x68|capable)
		send(own, 0x20|capable)
		expect("the port", 0, 0x20|capable)
		to.Leave(0, 1)
		send(groupAt(0), 0)
		send(groupAt(1), 0)
		expect("the second group after the first was left", 2, capable)
		to.Leave(0, 2)
		if fd, _ := to.queues[0].ArmRx(); fd != to.queues[0].own.fd {
			t.Error("the port waits for groups that it has left")
		}
		for i := range maxGroups + 1 {
			group := netip.AddrFrom4([4]byte{239, 9, 7, byte(i)})
			if own.Addr().Is6() {
				group = netip.AddrFrom16([16]byte{0: 0xff, 1: 0x15, 15: byte(i)})
			}
			if _, err := to.Join(0, group); (err == nil) != (i < maxGroups) {
				t.Fatalf("group %d: %v", i, err)
			}
		}
	}
}

// multicast6 returns an IPv6 address of an interface that supports multicast, unlike lo; "" if there is none.
func multicast6(t *testing.T) string {
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil &&
				i.Flags&(net.FlagMulticast|net.FlagUp) == net.FlagMulticast|net.FlagUp &&
				p.Addr().Is6() && p.Addr().IsGlobalUnicast() {
				return p.Addr().String()
			}
		}
	}
	t.Log("SKIP: no interface with groups has an IPv6 address")
	return ""
}

// TestECN: datagrams are sent as ECN-capable, and received ones show congestion marks.
func TestECN(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "::1"} {
		a := netip.MustParseAddr(at)
		to, _ := openECN(t, at)
		fd, err := open(netip.AddrPortFrom(a, 0), 0, false)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		level, option := unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		if a.Is4() {
			level, option = unix.IPPROTO_IP, unix.IP_TOS
		}
		if got, err := unix.GetsockoptInt(to.queues[0].own.fd, level, option); err != nil || got != capable {
			t.Errorf("%s: sends with traffic class %d, %v", at, got, err)
		}
		name, err := unix.Getsockname(to.queues[0].own.fd)
		if err != nil {
			t.Fatal(err)
		}
		for _, class := range []int{congested, capable, 0, 0x68 | congested} {
			if err := unix.SetsockoptInt(fd, level, option, class); err != nil {
				t.Fatal(err)
			}
			if err := unix.Sendto(fd, []byte("some bytes"), 0, name); err != nil {
				t.Fatal(err)
			}
			var p [1]port.Packet
			for end := time.Now().Add(time.Minute); to.queues[0].Rx(p[:]) == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("nothing came")
				}
			}
			if int(p[0].Class) != class {
				t.Errorf("%s: traffic class %x, not %x", at, p[0].Class, class)
			}
			to.queues[0].Free(p[:])
		}
	}
}

// TestNotOurAddress: the error contains a remedy.
func TestNotOurAddress(t *testing.T) {
	_, err := Open(Options{Name: "x", Address: netip.MustParseAddrPort("192.0.2.77:30035")})
	if err == nil || !strings.Contains(err.Error(), "192.0.2.77") || !strings.Contains(err.Error(), "ip address") {
		t.Error(err)
	}
}

// FuzzControlMessages: unexpected control messages must not be read beyond their end.
func FuzzControlMessages(f *testing.F) {
	var c controlBuffer
	f.Add(c[:c.putSegment(1472)])
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, b []byte) {
		var c controlBuffer
		if segment, _, _ := c.parse(copy(c[:], b)); segment < 0 {
			t.Errorf("a segment of %d bytes", segment)
		}
	})
}
