package netif

import (
	"bytes"
	"slices"
	"testing"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/wire"
)

// TestShare: which packets of a shared port the kernel gets, and which are ours.
func TestShare(t *testing.T) {
	r := newRig(t, linked.Options{})
	var kernel [][]byte
	room := true
	r.n.Kernel = func(b []byte, _, _ int) bool {
		if room {
			kernel = append(kernel, bytes.Clone(b))
		}
		return room
	}
	good := r.datagram("good")
	edit := func(at int, to ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], to)
		return b
	}
	echo := make([]byte, wire.EthernetLen+wire.IPv4Len+wire.ICMPEchoLen+8)
	buildEcho(echo, r.far.MAC(), r.n.MAC())
	arp := edit(12, append([]byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
		slices.Concat(good[6:12], []byte{10, 0, 0, 2}, make([]byte, 6), []byte{10, 0, 0, 1})...)...)
	for _, c := range []struct {
		name    string
		frame   []byte
		kernel  bool
		ours    bool // handed up
		answers int
	}{
		{"a datagram to us", good, false, true, 0},
		{"TCP to us", edit(wire.EthernetLen+9, 6), true, false, 0},
		{"another's address", edit(wire.EthernetLen+19, 9), true, false, 0},
		{"another protocol", edit(12, 0x88, 0xb5), true, false, 0},
		{"a fragment", edit(wire.EthernetLen+6, 0x20), true, false, 0},
		{"cut off", good[:20], true, false, 0},
		{"an echo request", echo, true, false, 0},
		{"a question for our address", arp, true, false, 1},
	} {
		kernel = nil
		r.raw(c.frame)
		r.pass()
		if got := drain(r.n); (len(got) == 1) != c.ours || (len(kernel) == 1) != c.kernel || c.kernel &&
			!bytes.Equal(kernel[0], c.frame) {
			t.Errorf("%s: handed up %q, the kernel got %x", c.name, got, kernel)
		}
		r.pass()
		if n, _ := r.far.Poll(); n != c.answers {
			t.Errorf("%s: %d answers", c.name, n)
		}
		drain(r.far)
	}
	for _, n := range r.n.Stats.Dropped {
		if n != 0 {
			t.Errorf("dropped %v", r.n.Stats.Dropped)
		}
	}
	kernel = nil
	for _, flag := range []port.Flags{port.RxInside, port.RxAgain} {
		if r.n.toKernel(&port.Packet{Data: good, Flags: flag}); kernel != nil {
			t.Error("the kernel gets what another worker sends, or passes on")
		}
	}
	for range 2 {
		r.raw(good)
		r.pass()
		r.n.Poll()
		if !r.n.Decline(r.n.Next()) {
			t.Error("the port is not shared")
		}
		drain(r.n)
		room = false
	}
	if len(kernel) != 1 || !bytes.Equal(kernel[0], good) || r.n.Stats.Dropped[DropKernel] != 1 {
		t.Errorf("a declined datagram: the kernel got %x, dropped %v", kernel, r.n.Stats.Dropped)
	}
	toThem := bytes.Clone(good)
	copy(toThem, r.far.info.MAC[:])
	copy(toThem[wire.EthernetLen+12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	r.n.Send(toThem) // the sum of the addresses is the same
	r.n.Send(make([]byte, 100000))
	r.pass()
	if got := drain(r.far); len(got) != 1 || got[0] != "good" {
		t.Errorf("the kernel's frame: %q came", got)
	}
}
