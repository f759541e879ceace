package netif

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

var (
	our6   = netip.MustParseAddr("fd00:9::1")
	their6 = netip.MustParseAddr("fd00:9::2")
)

// newRig6 is newRig with IPv6 addresses, after duplicate address detection.
func newRig6(t testing.TB) *rig {
	r, _ := pair6(t)
	r.far.Announce()
	r.claim()
	return r
}

// pair6 makes a rig before that, and the port of the far end.
func pair6(t testing.TB) (*rig, port.Port) {
	r := &rig{TB: t, net: linked.New(1)}
	o := linked.Options{Buffers: 1024, RxRing: 256, TxRing: 256,
		Misuse: func(what string) { t.Errorf("port misuse: %s", what) }}
	a, b := r.net.Pair(o, o, linked.Path{}, linked.Path{})
	r.n = New(0, a, Address{Prefix: netip.PrefixFrom(our6, 64)}, &r.clock)
	r.far = New(1, b, Address{Prefix: netip.PrefixFrom(their6, 64)}, &r.clock)
	r.n.info.SharedRx = true
	r.n.Announce()
	return r, b
}

// claim lets the time of duplicate address detection pass.
func (r *rig) claim() {
	r.settle()
	r.clock.Now += clock.Second
	r.clock.Run(r.clock.Now)
	r.settle()
}

// settle makes both ends process each other's messages.
func (r *rig) settle() {
	for range 3 {
		r.pass()
		drain(r.far)
		drain(r.n)
	}
}

// datagram6 makes a frame from the far end to us.
func (r *rig) datagram6(payload string) []byte {
	p := r.far.Path(r.n.Link(), netip.AddrPortFrom(their6, 1000), netip.AddrPortFrom(our6, 2000))
	frame := make([]byte, 2048)
	return frame[:p.Put(frame, copy(p.Payload(frame), payload))]
}

func TestResolve6(t *testing.T) {
	r := newRig6(t)
	var link Link
	told := 0
	r.n.Resolve(their6, func(l Link, ok bool) { link, told = l, told+1 })
	r.settle()
	if told != 1 || link.MAC != r.far.MAC() {
		t.Fatalf("resolved %d times, to %v, expected %v", told, link.MAC, r.far.MAC())
	}
	p := r.n.Path(link, netip.AddrPortFrom(our6, 1), netip.AddrPortFrom(their6, 2))
	p.Follow()
	b := r.n.Alloc()
	p.Send(b, copy(p.Payload(b), "over IPv6"))
	r.pass()
	if got := drain(r.far); len(got) != 1 || got[0] != "over IPv6" {
		t.Errorf("arrived: %q", got)
	}
	if r.clock.Next() < r.clock.Now+50*clock.Second {
		t.Errorf("a timer runs at %d though all is known", r.clock.Next())
	}
}

// TestNobody6: resolution of an unused address is given up.
func TestNobody6(t *testing.T) {
	r := newRig6(t)
	told := 0
	r.n.Resolve(netip.MustParseAddr("fd00:9::77"), func(l Link, ok bool) {
		if told++; ok {
			t.Errorf("resolved to %v", l)
		}
	})
	for range 12 {
		r.settle()
		r.clock.Now += 100 * clock.Millisecond
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

func TestNextHop6(t *testing.T) {
	r := newRig6(t)
	gateway := netip.MustParseAddr("fe80::1")
	for _, c := range []struct {
		dst, want string // "": no route
		gateway   netip.Addr
	}{
		{"fd00:9::5", "fd00:9::5", netip.Addr{}},
		{"fd00:a::5", "", netip.Addr{}},
		{"fd00:a::5", "fe80::1", gateway},
		{"fe80::5", "", gateway},
		{"10.0.0.1", "", gateway},
	} {
		r.n.addr.Gateway = c.gateway
		hop, ok := r.n.NextHop(netip.MustParseAddr(c.dst))
		if ok != (c.want != "") || ok && hop.String() != c.want {
			t.Errorf("%s by %v: %v %v, expected %q", c.dst, c.gateway, hop, ok, c.want)
		}
	}
}

// echo6 makes an echo request from the far end to an address of ours.
func (r *rig) echo6(src, dst netip.Addr) []byte {
	b := make([]byte, wire.EthernetLen+wire.IPv6Len+16)
	at := wire.PutEthernet(b, r.n.MAC(), r.far.MAC(), wire.EtherTypeIPv6)
	at += wire.PutIPv6(b[at:], src.As16(), dst.As16(), wire.ProtoICMPv6, 16)
	copy(b[at:], []byte{wire.ICMPv6EchoRequest, 0, 0, 0, 0x12, 0x34, 0, 1, 'p', 'i', 'n', 'g'})
	checksum6(b)
	return b
}

// checksum6 corrects the checksum of an ICMPv6 message without extension headers.
func checksum6(b []byte) {
	at := wire.EthernetLen + wire.IPv6Len
	b[at+2], b[at+3] = 0, 0
	pseudo := append(bytes.Clone(b[22:54]), 0, 0, 0, byte(len(b)-at), 0, 0, 0, wire.ProtoICMPv6)
	sum := ^wire.Fold(wire.Checksum(wire.Checksum(0, pseudo), b[at:]))
	binary.BigEndian.PutUint16(b[at+2:], sum)
}

func TestEcho6(t *testing.T) {
	r := newRig6(t)
	request := r.echo6(their6, our6)
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
	if err := g.Parse(reply, len(reply)); err != nil || g.Dst != r.far.MAC() || g.Src6 != our6.As16() ||
		g.Dst6 != their6.As16() ||
		reply[54] != wire.ICMPv6EchoReply || !wire.VerifyICMPv6Checksum(&g, reply[54:]) ||
		!bytes.Equal(reply[58:], request[58:]) {
		t.Errorf("answer %x to %x: %v", reply, request, err)
	}
	r.far.Next()
}

// TestDrops6: packets that are invalid or not for us are counted by reason or ignored, and later packets of
// the burst are returned.
func TestDrops6(t *testing.T) {
	r := newRig6(t)
	other := netip.MustParseAddr("fd00:9::3")
	r.n.AddOwn(other)
	good := r.datagram6("good")
	from := func(src string) []byte {
		p := r.far.Path(r.n.Link(), netip.AddrPortFrom(netip.MustParseAddr(src), 1000), netip.AddrPortFrom(our6, 2000))
		b := make([]byte, 200)
		return b[:p.Put(b, 4)]
	}
	edit := func(b []byte, f func(b []byte)) []byte {
		b = bytes.Clone(b)
		f(b)
		return b
	}
	for _, c := range []struct {
		name  string
		frame []byte
		drop  Drop // "": ignored
	}{
		{"payload changed", edit(good, func(b []byte) { b[len(b)-1]++ }), DropChecksum},
		{"address changed", edit(good, func(b []byte) { b[30]++ }), DropChecksum},
		{"no checksum", edit(good, func(b []byte) { b[60], b[61] = 0, 0 }), DropChecksum},
		{"source is a group station", edit(good, func(b []byte) { b[6] |= 1 }), DropGroupSource},
		{"from a group", from("ff02::1"), DropSource6},
		{"from nobody", from("::"), DropSource6},
		{"from ::1", from("::1"), DropSource6},
		{"from an address of IPv4", edit(good, func(b []byte) { clear(b[22:32]); b[32], b[33] = 0xff, 0xff }), DropSource6},
		{"from our own address", from("fd00:9::1"), DropSource6},
		{"from another port's", from("fd00:9::3"), DropSource6},
		{"an echo request from it", r.echo6(other, our6), DropSource6},
		{"a fragment", edit(good, func(b []byte) { b[20] = 44 }), Drop(wire.ErrIPv6Fragment.Error())},
		{"a routing header", edit(good, func(b []byte) { b[20] = 43 }), Drop(wire.ErrIPv6Routing.Error())},
		{"another's address", edit(good, func(b []byte) { b[53]++ }), ""},
		{"a group", edit(good, func(b []byte) { b[38] = 0xff }), ""},
		{"another protocol", edit(good, func(b []byte) { b[20] = 6 }), ""},
		{"a router's advertisement", edit(r.echo6(their6, our6), func(b []byte) { b[54] = 134; checksum6(b) }), ""},
		{"packet too big", edit(r.echo6(their6, our6), func(b []byte) { b[54] = 2; checksum6(b) }), ""},
		{"a solicitation from behind a router", edit(r.echo6(their6, our6), func(b []byte) { b[54] = 135; checksum6(b) }),
			Drop(wire.ErrNDPHopLimit.Error())},
		{"a query from behind a router", edit(r.echo6(their6, our6), func(b []byte) { b[54] = 130; checksum6(b) }),
			Drop(wire.ErrMLD.Error())},
		{"IPv4", newRig(t, linked.Options{}).datagram("of IPv4"), ""},
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
			if want := c.drop != ""; (total == 1) != want || want && r.n.Stats.Dropped[c.drop] != 1 {
				t.Errorf("dropped %v, expected %q", r.n.Stats.Dropped, c.drop)
			}
		})
	}
}

// TestDuplicate: two hosts with one address detect that; the second one stays cut off, and logs it once.
func TestDuplicate(t *testing.T) {
	r, b := pair6(t)
	r.claim()
	second := New(1, b, Address{Prefix: netip.PrefixFrom(our6, 64)}, &r.clock)
	r.far = second
	lost := 0
	second.Lost = func(by wire.MAC) {
		if lost++; by != r.n.MAC() {
			t.Errorf("lost to %v", by)
		}
	}
	second.Announce()
	r.settle()
	r.settle()
	if lost != 1 {
		t.Errorf("lost %d times", lost)
	}
	p := r.n.Path(second.Link(), netip.AddrPortFrom(their6, 1), netip.AddrPortFrom(our6, 2))
	frame := r.n.Alloc()
	p.Send(frame, copy(p.Payload(frame), "for whom?"))
	r.pass()
	if got := drain(second); len(got) != 0 || second.Stats.Dropped[DropDuplicate] != 1 {
		t.Errorf("handed up %q, dropped %v", got, second.Stats.Dropped)
	}
	told := false
	second.Resolve(their6, func(l Link, ok bool) { told = !ok })
	if !told {
		t.Error("it still looks for neighbours")
	}
}

// TestMulticastListeners: reports when groups are joined and left, and in answer to queries; the solicited-node group
// of our address is always among them.
func TestMulticastListeners(t *testing.T) {
	r := newRig6(t)
	group := netip.MustParseAddr("ff15::1234")
	if r.n.Groups() != 0 || r.n.Join(group) != nil || r.n.Groups() != 1 ||
		r.n.Join(netip.MustParseAddr("239.1.2.3")) != nil || r.n.Groups() != 1 {
		t.Error("groups are wrong")
	}
	expect := func(what string, want ...string) {
		t.Helper()
		r.pass()
		waiting, _ := r.far.Poll()
		got := map[string]bool{}
		for _, p := range r.far.rx.p[:waiting] {
			var f wire.Frame
			if err := f.Parse(p.Data, len(p.Data)); err != nil || f.Proto != wire.ProtoICMPv6 ||
				p.Data[f.PayloadOff] != wire.ICMPv6MLDReport ||
				f.Dst6 != wire.AllMLDv2Routers || !f.Src6.IsLinkLocal() {
				t.Errorf("%s: %v %+v", what, err, f)
				continue
			}
			m := p.Data[f.PayloadOff:]
			got[string('0'+m[8])+" "+netip.AddrFrom16([16]byte(m[12:28])).String()] = true
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: %v, expected %v", what, got, want)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
		for r.far.Next() != nil {
		}
	}
	query := func(about netip.Addr) {
		b := make([]byte, wire.EthernetLen+wire.IPv6Len+28)
		at := wire.PutEthernet(b, wire.Group6MAC(wire.AllNodes), r.far.MAC(), wire.EtherTypeIPv6)
		at += wire.PutIPv6(b[at:], netip.MustParseAddr("fe80::2").As16(), wire.AllNodes, wire.ProtoICMPv6, 28)
		b[21], b[at] = 1, wire.ICMPv6MLDQuery
		ip := about.As16()
		copy(b[at+8:], ip[:])
		checksum6(b)
		r.raw(b)
		r.pass()
		drain(r.n)
	}
	expect("joined", "4 ff15::1234")
	r.clock.Now += clock.Second
	query(netip.IPv6Unspecified())
	expect("asked for all", "2 ff15::1234", "2 ff02::1:ff00:1")
	query(group)
	expect("asked again at once")
	r.clock.Now += clock.Second
	query(group)
	expect("asked for one", "2 ff15::1234")
	r.n.Leave(group)
	r.n.Leave(group)
	expect("left", "3 ff15::1234")
}

// TestGroup6: packets to a group arrive at the hosts that joined it.
func TestGroup6(t *testing.T) {
	r := newRig6(t)
	group := netip.MustParseAddr("ff15::1234")
	send := func() {
		link, ok := r.far.GroupLink(group)
		if want := (wire.MAC{0x33, 0x33, 0, 0, 0x12, 0x34}); !ok || link.MAC != want {
			t.Fatalf("the group is at %v, %v", link, ok)
		}
		p := r.far.Path(link, netip.AddrPortFrom(their6, 1), netip.AddrPortFrom(group, 2))
		b := r.far.Alloc()
		p.Send(b, copy(p.Payload(b), "all"))
		r.pass()
	}
	send()
	if got := drain(r.n); len(got) != 0 {
		t.Errorf("not joined, and got %q", got)
	}
	r.n.Join(group)
	send()
	if got := drain(r.n); len(got) != 1 {
		t.Errorf("joined, and got %q", got)
	}
}
