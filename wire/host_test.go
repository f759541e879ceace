package wire

import (
	"errors"
	"testing"
)

// Capture rxe-atomic-lat-cas, without its Ethernet header.
const arpWho = "00 01 08 00 06 04 00 01 52 54 00 a8 28 2f 0a 09 00 02 00 00 00 00 00 00 0a 09 00 03"

func TestARPGolden(t *testing.T) {
	b := unhex(t, arpWho)
	want := ARP{Op: ARPRequest, SenderMAC: vm1MAC, SenderIP: vm1IP, TargetIP: vm2IP}
	var a ARP
	if n, err := a.Parse(b); n != ARPLen || err != nil || a != want {
		t.Errorf("got %d %v %+v, want %+v", n, err, a, want)
	}
	out := make([]byte, ARPLen)
	if n := want.Put(out); n != ARPLen {
		t.Errorf("Put answers %d", n)
	}
	sameBytes(t, "Put", out, b)
}

func TestARPRefusals(t *testing.T) {
	var a ARP
	for n := range ARPLen {
		if _, err := a.Parse(make([]byte, n)); !errors.Is(err, ErrARPShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for i := range 6 {
		b := unhex(t, arpWho)
		b[i]++
		if _, err := a.Parse(b); !errors.Is(err, ErrARPKind) {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	if _, err := a.Parse(append(unhex(t, arpWho), make([]byte, 18)...)); err != nil {
		t.Errorf("with Ethernet padding: %v", err)
	}
}

// echoFrame is a ping as Linux sends it, from vm2 to vm1, with n bytes.
func echoFrame(n int) []byte {
	b := udpFrame(n, 3)
	var h UDPHeader
	h.Init(vm2MAC, vm1MAC, vm2IP, vm1IP, 0, 0)
	h.Put(b, n, 3)
	b[23] = ProtoICMP
	b[24], b[25] = 0, 0
	sum := ^Fold(Checksum(0, b[14:34]))
	b[24], b[25] = byte(sum>>8), byte(sum)
	(&ICMPEcho{Type: ICMPEchoRequest, ID: 0x1234, Seq: 9}).Put(b[34:])
	return b
}

func TestEchoReply(t *testing.T) {
	for _, n := range []int{0, 1, 56, 57, 1400} {
		request := echoFrame(n)
		frame := append(append([]byte{}, request...), 0xee) // padding
		var f Frame
		if err := f.Parse(frame, len(frame)); err != nil {
			t.Fatal(err)
		}
		if err := EchoReply(&f, frame, vm1MAC); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		var g Frame
		if err := g.Parse(frame, len(frame)); err != nil {
			t.Fatal(err)
		}
		if g.Dst != vm2MAC || g.Src != vm1MAC || g.DstIP != vm2IP || g.SrcIP != vm1IP || g.TTL != 64 {
			t.Errorf("%d bytes: reply addressed %+v", n, g)
		}
		if !VerifyIPv4Checksum(frame[14:34]) {
			t.Errorf("%d bytes: IPv4 checksum wrong", n)
		}
		var e ICMPEcho
		if _, err := e.Parse(frame[34 : len(frame)-1]); err != nil ||
			e != (ICMPEcho{Type: ICMPEchoReply, ID: 0x1234, Seq: 9}) {
			t.Errorf("%d bytes: reply %+v (%v)", n, e, err)
		}
		sameBytes(t, "payload", frame[42:len(frame)-1], request[42:])
	}
}

func TestEchoReplyRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"reply", func(b []byte) []byte {
			(&ICMPEcho{Type: ICMPEchoReply}).Put(b[34:])
			return b
		}, ErrICMPKind},
		{"destination unreachable", func(b []byte) []byte { b[34] = 3; return b }, ErrICMPKind},
		{"code 1", func(b []byte) []byte { b[35] = 1; return b }, ErrICMPKind},
		{"UDP", func(b []byte) []byte { b[23] = ProtoUDP; b[38], b[39] = 0, 28; return b }, ErrICMPKind},
		{"checksum", func(b []byte) []byte { b[50] ^= 4; return b }, ErrICMPChecksum},
		{"short", func(b []byte) []byte { b[17] = 27; return b }, ErrICMPShort},
		{"options", func(b []byte) []byte { return withOptions(b, 4) }, ErrICMPRefused},
		{"to broadcast", func(b []byte) []byte { copy(b[30:], []byte{255, 255, 255, 255}); return b }, ErrICMPRefused},
		{"from multicast", func(b []byte) []byte { b[26] = 224; return b }, ErrICMPRefused},
		{"from group station", func(b []byte) []byte { b[6] |= 1; return b }, ErrICMPRefused},
	} {
		b := c.edit(echoFrame(20))
		before := append([]byte{}, b...)
		var f Frame
		if err := f.Parse(b, len(b)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := EchoReply(&f, b, vm1MAC); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		sameBytes(t, c.name+" leaves the frame", b, before)
	}
	b := echoFrame(20)
	var f Frame
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if err := EchoReply(&f, b[:40], vm1MAC); !errors.Is(err, ErrFrameShort) {
		t.Errorf("cut frame: %v", err)
	}
}
