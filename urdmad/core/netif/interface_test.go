package netif

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/fault"
	"urdma/wire"
)

var (
	ourAddr   = netip.MustParseAddr("10.0.0.1")
	theirAddr = netip.MustParseAddr("10.0.0.2")
)

// rig is an interface and the bare port at the other end of its wire.
type rig struct {
	testing.TB
	net   *linked.Network
	clock clock.Clock
	n     *Interface
	far   *Interface // a second one, for tests that need a partner
}

func newRig(t testing.TB, o linked.Options) *rig {
	r := &rig{TB: t, net: linked.New(1)}
	o.Misuse = func(what string) { t.Errorf("port misuse: %s", what) }
	a, b := r.net.Pair(o, linked.Options{Misuse: o.Misuse, Buffers: o.Buffers}, linked.Path{}, linked.Path{})
	r.n = New(0, a, Address{Prefix: netip.PrefixFrom(ourAddr, 24)}, &r.clock)
	r.far = New(1, b, Address{Prefix: netip.PrefixFrom(theirAddr, 24)}, &r.clock)
	return r
}

// pass sends the queued frames and delivers them.
func (r *rig) pass() {
	r.n.Flush()
	r.far.Flush()
	r.clock.Now += 100 * clock.Microsecond
	r.net.Advance(int64(r.clock.Now))
	r.clock.Run(r.clock.Now)
}

// drain processes the received frames, and returns the payloads of datagrams.
func drain(n *Interface) (got []string) {
	for {
		waiting, _ := n.Poll()
		if waiting == 0 {
			return got
		}
		for d := n.Next(); d != nil; d = n.Next() {
			got = append(got, string(d.Data))
		}
	}
}

// raw sends a frame from the far end.
func (r *rig) raw(frame []byte) {
	r.Helper()
	b := r.far.Alloc()
	if b == nil {
		r.Fatal("no buffer")
	}
	r.far.commit(copy(b, frame))
}

// datagram makes a frame from the far end to us.
func (r *rig) datagram(payload string) []byte {
	p := r.far.Path(r.n.Link(), netip.AddrPortFrom(theirAddr, 1000), netip.AddrPortFrom(ourAddr, 2000))
	frame := make([]byte, 2048)
	return frame[:p.Put(frame, copy(p.Payload(frame), payload))]
}

func TestResolve(t *testing.T) {
	r := newRig(t, linked.Options{})
	var link Link
	r.n.Resolve(theirAddr, func(l Link, ok bool) {
		if !ok {
			t.Error("nobody answered")
		}
		link = l
	})
	for range 2 {
		r.pass()
		drain(r.far)
		drain(r.n)
	}
	if link.MAC != r.far.MAC() {
		t.Errorf("resolved to %v, expected %v", link.MAC, r.far.MAC())
	}
	if r.clock.Next() < 50*clock.Second {
		t.Errorf("a timer runs at %d though all is known", r.clock.Next())
	}
}

func TestEcho(t *testing.T) {
	r := newRig(t, linked.Options{})
	request := make([]byte, wire.EthernetLen+wire.IPv4Len+wire.ICMPEchoLen+8)
	f := buildEcho(request, r.far.MAC(), r.n.MAC())
	r.raw(request)
	r.pass()
	if got := drain(r.n); len(got) != 0 {
		t.Errorf("handed up %q", got)
	}
	r.pass()
	if waiting, _ := r.far.Poll(); waiting != 1 {
		t.Fatalf("%d answers", waiting)
	}
	reply := r.far.rx.p[0].Data
	var g wire.Frame
	if err := g.Parse(reply, len(reply)); err != nil || g.Proto != wire.ProtoICMP || g.Dst != r.far.MAC() ||
		g.SrcIP != f.DstIP || g.DstIP != f.SrcIP || reply[g.PayloadOff] != 0 ||
		!bytes.Equal(reply[g.PayloadOff+4:], request[g.PayloadOff+4:]) {
		t.Errorf("answer %x to %x: %v", reply, request, err)
	}
	r.far.Next()
}

// buildEcho makes an echo request from 10.0.0.2 to 10.0.0.1.
func buildEcho(b []byte, src, dst wire.MAC) (f wire.Frame) {
	at := wire.PutEthernet(b, dst, src, wire.EtherTypeIPv4)
	ip := b[at:]
	copy(ip, []byte{0x45, 0, 0, byte(len(ip)), 0, 1, 0x40, 0, 64, wire.ProtoICMP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1})
	sum := wire.Fold(wire.Checksum(0, ip[:wire.IPv4Len]))
	ip[10], ip[11] = byte(^sum>>8), byte(^sum)
	icmp := ip[wire.IPv4Len:]
	copy(icmp, []byte{8, 0, 0, 0, 0x12, 0x34, 0, 1, 'p', 'i', 'n', 'g'})
	sum = wire.Fold(wire.Checksum(0, icmp))
	icmp[2], icmp[3] = byte(^sum>>8), byte(^sum)
	_ = f.Parse(b, len(b)) // our own
	return f
}

// TestDrops: packets that are invalid or not for us are counted by reason or ignored, and later packets of
// the burst are returned.
func TestDrops(t *testing.T) {
	r := newRig(t, linked.Options{})
	good := r.datagram("good")
	spoil := func(at int, x byte) []byte {
		b := bytes.Clone(good)
		b[at] ^= x
		return b
	}
	for _, c := range []struct {
		name  string
		frame []byte
		drop  Drop // "": ignored
	}{
		{"payload changed", spoil(len(good)-1, 1), DropChecksum},
		{"IPv4 header changed", spoil(wire.EthernetLen+8, 1), DropChecksum},
		{"source is a group", spoil(6, 1), DropGroupSource},
		{"cut off", good[:20], "any"},
		{"another's address", func() []byte {
			p := r.far.Path(r.n.Link(), netip.AddrPortFrom(theirAddr, 1), netip.MustParseAddrPort("10.0.0.3:2"))
			b := make([]byte, 200)
			return b[:p.Put(b, 4)]
		}(), ""},
		{"another protocol", spoil(12, 0x80), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			clear(r.n.Stats.Dropped)
			r.raw(c.frame)
			r.raw(good)
			r.pass()
			if got := drain(r.n); len(got) != 1 || got[0] != "good" {
				t.Errorf("handed up %q", got)
			}
			total := uint64(0)
			for _, n := range r.n.Stats.Dropped {
				total += n
			}
			if want := c.drop != ""; (total == 1) != want || want && c.drop != "any" && r.n.Stats.Dropped[c.drop] != 1 {
				t.Errorf("dropped %v, expected %q", r.n.Stats.Dropped, c.drop)
			}
		})
	}
}

// TestUnfinishedChecksum: a checksum that the sender left to a network card is accepted if it may be unfinished,
// between interfaces of the kernel.
func TestUnfinishedChecksum(t *testing.T) {
	r := newRig(t, linked.Options{})
	b := r.datagram("unfinished")
	var f wire.Frame
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	udp := b[f.PayloadOff-wire.UDPLen:]
	sum := uint32(wire.ProtoUDP) + uint32(len(udp))
	for _, ip := range []wire.IPv4{f.SrcIP, f.DstIP} {
		sum += uint32(ip[0])<<8 + uint32(ip[1]) + uint32(ip[2])<<8 + uint32(ip[3])
	}
	binary.BigEndian.PutUint16(udp[6:], uint16(sum))
	for _, iface := range []string{"", "eth1"} {
		r.n.info.Interface = iface
		r.raw(b)
		r.pass()
		if got := drain(r.n); (len(got) == 1) != (iface != "") {
			t.Errorf("interface %q: handed up %q, dropped %v", iface, got, r.n.Stats.Dropped)
		}
	}
}

// TestKeep: kept datagrams stay unchanged while others arrive, are limited in number, and are given back once.
func TestKeep(t *testing.T) {
	r := newRig(t, linked.Options{})
	r.n.Keepable = 8
	var account Account
	var held []Held
	for i := range 12 {
		r.raw(r.datagram(string(rune('a' + i))))
	}
	r.pass()
	refused := 0
	for {
		waiting, _ := r.n.Poll()
		if waiting == 0 {
			break
		}
		for d := r.n.Next(); d != nil; d = r.n.Next() {
			if h, ok := r.n.Keep(&account, d); ok {
				held = append(held, h)
			} else {
				refused++
			}
		}
	}
	if len(held) != 4 || refused != 8 {
		t.Fatalf("kept %d of 12 where 8 can be kept, expected half of that", len(held))
	}
	for range 100 { // later datagrams must not overwrite them
		r.raw(r.datagram("later"))
		r.pass()
		drain(r.n)
	}
	for i := range held {
		if data := held[i].Payload(0); string(data) != string(rune('a'+i)) {
			t.Errorf("kept datagram %d says %q", i, data)
		}
		r.n.Release(&account, &held[i])
		r.n.Release(&account, &held[i]) // of none
	}
	if account.kept != 0 || r.n.Kept != 0 {
		t.Errorf("%d and %d are still on the accounts", account.kept, r.n.Kept)
	}
}

// TestFaultInBurst: a datagram whose handling ends in a fault is given back, and the rest of its burst is handled in
// the next turn.
func TestFaultInBurst(t *testing.T) {
	missing, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(missing) }()
	r := newRig(t, linked.Options{})
	for i := range 5 {
		r.raw(r.datagram(string(rune('a' + i))))
	}
	r.pass()
	var got []string
	turn := func() {
		r.n.Poll()
		for d := r.n.Next(); d != nil; d = r.n.Next() {
			got = append(got, string(d.Data))
			if d.Data[0] == 'c' {
				missing[0] = 1
			}
		}
	}
	if _, faulted := fault.Guard(turn, nil); !faulted {
		t.Fatal("no fault")
	}
	if _, faulted := fault.Guard(turn, nil); faulted || len(got) != 5 || got[3] != "d" || got[4] != "e" {
		t.Errorf("handled %q, faulted again: %v", got, faulted)
	}
	if out := r.n.rx; out.at != 0 || out.have != 0 {
		t.Errorf("not all was given back: %+v", out)
	}
}

// TestFaultAfterKeep: if the handling of the last datagram of a burst ends in a fault after the datagram was kept, it
// stays kept, and no datagram of the next burst is given back for it.
func TestFaultAfterKeep(t *testing.T) {
	r := newRig(t, linked.Options{})
	var account Account
	for _, payload := range []string{"a", "b", "kept"} {
		r.raw(r.datagram(payload))
	}
	r.pass()
	r.n.Poll()
	for range 2 {
		r.n.Next()
	}
	held, ok := r.n.Keep(&account, r.n.Next())
	if !ok {
		t.Fatal("nothing was kept")
	}
	for round := range 50 { // the turns after the one with the fault
		for i := range 4 {
			r.raw(r.datagram(string(rune('c' + i))))
		}
		r.pass()
		if got := drain(r.n); len(got) != 4 || got[0] != "c" || got[3] != "f" {
			t.Fatalf("round %d: handled %q", round, got)
		}
	}
	if data := held.Payload(0); string(data) != "kept" {
		t.Errorf("the kept datagram says %q", data)
	}
	r.n.Release(&account, &held)
}

// TestPathFollows: a path sends to the present address of its next hop; a path that was left stays unchanged.
func TestPathFollows(t *testing.T) {
	r := newRig(t, linked.Options{})
	local, peer := netip.AddrPortFrom(ourAddr, 1), netip.AddrPortFrom(theirAddr, 2)
	followed, left := r.n.Path(Link{MAC: r.far.MAC()}, local, peer), r.n.Path(Link{MAC: r.far.MAC()}, local, peer)
	followed.Follow()
	left.Follow()
	left.Leave()
	moved := wire.MAC{2, 0, 0, 0, 0xaa, 1}
	arp := wire.ARP{Op: wire.ARPReply, SenderMAC: r.far.MAC(), SenderIP: theirAddr.As4(), TargetMAC: r.n.MAC(),
		TargetIP: ourAddr.As4()}
	say := func() {
		b := make([]byte, 64)
		at := wire.PutEthernet(b, r.n.MAC(), arp.SenderMAC, wire.EtherTypeARP)
		r.raw(b[:at+arp.Put(b[at:])])
		r.pass()
		drain(r.n)
	}
	say()
	r.clock.Now += clock.Time(2 * time.Second)
	arp.SenderMAC = moved
	say()
	for _, c := range []struct {
		path *Path
		want wire.MAC
	}{{&followed, moved}, {&left, r.far.MAC()}} {
		b := make([]byte, 100)
		c.path.Put(b, 0)
		if got := wire.MAC(b[:6]); got != c.want {
			t.Errorf("sends to %v, expected %v", got, c.want)
		}
	}
	followed.Leave()
	if len(r.n.paths) != 0 {
		t.Errorf("paths are left: %v", r.n.paths)
	}
}
