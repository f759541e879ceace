package steer

import (
	"bytes"
	"net/netip"
	"testing"

	"urdma/dpdk/loopback"
	"urdma/dpdk/port"
	"urdma/wire"
)

// payloads is a port whose packets are the payloads of UDP sockets.
type payloads struct{ port.Port }

func (p payloads) Info() port.Info {
	i := p.Port.Info()
	i.Datagrams = true
	return i
}

// TestCrossing: a packet to the address of another port is converted to that port's form, with the sender's
// address as its source; it is dropped if there is no equivalent.
func TestCrossing(t *testing.T) {
	payload := []byte{0x10, 2, 3, 4, 5, 6, 7, 8, 9}
	encap := func(kind wire.EncapType, b ...byte) []byte {
		head := make([]byte, wire.EncapLen)
		(&wire.Encap{Type: kind, Src: 50001, Dst: 50002}).Put(head)
		return append(head, b...)
	}
	padded := append(encap(wire.EncapTRP, payload...), make([]byte, 7)...)
	wire.PutPadding(padded, wire.EncapLen+len(payload))
	for _, own := range [][2]netip.Addr{{ours, netip.MustParseAddr("10.0.1.1")}, {ours6, netip.MustParseAddr("fd01::1")}} {
		for _, roce := range []bool{false, true} {
			h := NewHub(2, NewNumbers(2), func(int) {})
			lo := loopback.Open("lo", [6]byte{}, 1500, own[0])
			frames, sockets := h.Add(lo, own[0], roce), h.Add(payloads{lo}, own[1], roce)
			peer := func(a netip.Addr) port.Peer { return port.PeerOf(netip.AddrPortFrom(a, 4791)) }
			sent, want := payload, payload
			if !roce {
				sent, want = padded, encap(wire.EncapTRP, payload...)
			}
			there, ok := sockets.queues[0].as(frames, port.Packet{Data: sent, Peer: peer(own[0])})
			if !ok {
				t.Fatalf("%v, RoCEv2 %v: nothing arrives at a port of frames", own, roce)
			}
			var f wire.Frame
			if err := f.Parse(there.Data, len(there.Data)); err != nil || !bytes.Equal(there.Data[f.PayloadOff:], payload) {
				t.Errorf("the frame % x: %v", there.Data, err)
			}
			if dst, ok := destination(there.Data); !ok || dst != own[0] {
				t.Errorf("the frame is for %v, expected %v", dst, own[0])
			}
			number := wire.Encap{Src: 50001, Dst: 50002}
			if roce {
				number = wire.Encap{Src: 4791, Dst: 4791}
			}
			if f.SrcPort != number.Src || f.DstPort != number.Dst {
				t.Errorf("the frame has the port numbers %d and %d, expected %+v", f.SrcPort, f.DstPort, number)
			}
			frame := append([]byte(nil), there.Data...) // its first address is the sender's
			back, ok := frames.queues[0].as(sockets, port.Packet{Data: frame})
			if !ok || !bytes.Equal(back.Data, want) || back.Peer.Addr() != own[1] {
				t.Errorf("a port of sockets gets % x from %v (%v), expected % x from %v", back.Data, back.Peer.Addr(), ok, want,
					own[1])
			}
		}
	}
	h := NewHub(2, NewNumbers(2), func(int) {})
	lo := loopback.Open("lo", [6]byte{}, 1500, ours)
	frames, sockets, roce := h.Add(lo, ours, false), h.Add(payloads{lo}, theirs, false),
		h.Add(payloads{lo}, netip.MustParseAddr("10.0.0.3"), true)
	for what, v := range map[string]struct {
		from, to *Port
		b        []byte
	}{
		"a probe":          {sockets, frames, encap(wire.EncapProbe, payload...)},
		"no encapsulation": {sockets, frames, payload},
		"wrong padding":    {sockets, frames, encap(wire.EncapPadded, 0, 9)},
		"ARP":              {frames, sockets, arp(wire.ARP{Op: wire.ARPReply})},
		"a stump":          {frames, sockets, []byte{1}},
		"another protocol": {frames, roce, packetTo(netip.AddrPortFrom(ours, 1), netip.AddrPortFrom(theirs, 2), 1)},
	} {
		if w, ok := v.from.queues[0].as(v.to, port.Packet{Data: v.b, Peer: port.PeerOf(netip.AddrPortFrom(ours, 1))}); ok {
			t.Errorf("%s arrives as % x", what, w.Data)
		}
	}
}

// TestOtherMTU: a port gets packets from another port of this urdmad that are longer than its own. Within one worker
// nothing limits them, either.
func TestOtherMTU(t *testing.T) {
	h := NewHub(2, NewNumbers(2), func(int) {})
	long := h.Add(loopback.Open("lo", [6]byte{}, 9000, ours), ours, false)
	short := h.Add(loopback.Open("lo", [6]byte{}, 1500, theirs), theirs, false)
	h.numbers.Of(1).Take(1001)
	payload := bytes.Repeat([]byte{1, 2, 3, 4}, 2000)
	for range 2 * slots { // each slot is used again
		send(t, long.For(0).Queue(0), packetTo(netip.AddrPortFrom(ours, 1), netip.AddrPortFrom(theirs, 1001), payload...))
		var got [2]port.Packet
		q := short.For(1).Queue(0)
		n := q.Rx(got[:])
		if n != 1 || !bytes.HasSuffix(got[0].Data, payload) {
			t.Fatalf("%d packets, expected one with %d bytes of payload; %d are said to be dropped", n, len(payload),
				short.Stats().RxDropped)
		}
		q.Free(got[:n])
	}
}
