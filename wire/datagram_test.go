package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
)

// TestDatagram checks the bytes of the header in both directions, and what Parse refuses.
func TestDatagram(t *testing.T) {
	golden := unhex(t, "00000007 00000000 6000 00abcdef 00123456 11111111 c0000000 0a0b0c0d")
	want := Datagram{PSN: 7, Dst: 0xabcdef, Src: 0x123456, QKey: 0x11111111, Solicited: true, HasImmediate: true,
		Immediate: binary.NativeEndian.Uint32([]byte{10, 11, 12, 13})}
	got := bytes.Repeat([]byte{0xff}, DatagramLen)
	if want.Put(got); !bytes.Equal(got, golden) {
		t.Errorf("put % x, want % x", got, golden)
	}
	var d Datagram
	if err := d.Parse(golden); err != nil || d != want {
		t.Errorf("parsed %+v, %v", d, err)
	}
	for _, c := range []struct {
		at   int
		to   byte
		want error
	}{{8, 0x50, ErrDatagramOpcode}, {8, 0x70, ErrDatagramOpcode}, {10, 1, ErrDatagramQPN}, {14, 1, ErrDatagramQPN},
		{9, 9, nil}, {25, 9, nil}} {
		b := bytes.Clone(golden)
		b[c.at] = c.to
		if err := d.Parse(b); !errors.Is(err, c.want) {
			t.Errorf("byte %d = %d: %v, want %v", c.at, c.to, err, c.want)
		}
	}
	for n := range DatagramLen {
		if err := d.Parse(golden[:n]); !errors.Is(err, ErrDatagramShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if op, ok := PeekOp(golden); !ok || op != OpDatagram {
		t.Errorf("opcode %v", op)
	}
	var connection TRP
	if _, err := connection.Parse(golden); !errors.Is(err, ErrTRPOpcode) {
		t.Errorf("a connection takes it: %v", err)
	}
}

// TestGRH checks the bytes in front of a message.
func TestGRH(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, GRHLen)
	PutGRH(b, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), 0xfe, UDPLen+DatagramLen+1000)
	want := append(make([]byte, 20), unhex(t, "45fe 0422 0000 4000 4011 21cb 0a000001 0a000002")...)
	if !bytes.Equal(b, want) {
		t.Errorf("% x, want % x", b[20:], want[20:])
	}
	if !VerifyIPv4Checksum(b[20:]) {
		t.Error("the checksum is wrong")
	}
	PutGRH(b, netip.MustParseAddr("fd00::1"), netip.MustParseAddr("2001:db8::2"), 0xfe, UDPLen+DatagramLen+1000)
	want = unhex(t, "6fe00000 040e 11 40 fd00 0000 0000 0000 0000 0000 0000 0001 2001 0db8 0000 0000 0000 0000 0000 0002")
	if !bytes.Equal(b, want) {
		t.Errorf("IPv6: % x, want % x", b, want)
	}
}

// TestMaxDatagram: a message of this length fits into a packet of the port, and one of the next larger MTU does
// not.
func TestMaxDatagram(t *testing.T) {
	for mtu, want := range map[int]int{68: 256, 577: 256, 578: 512, 1089: 512, 1090: 1024, 1500: 1024, 2113: 1024,
		2114: 2048, 4161: 2048,
		4162: 4096, 9000: 4096, 65535: 4096} {
		if got := MaxDatagram(mtu, IPv4Len); got != want {
			t.Errorf("MTU %d: %d, want %d", mtu, got, want)
		}
		if got := MaxDatagram(mtu+20, IPv6Len); got != want {
			t.Errorf("MTU %d of IPv6: %d, want %d", mtu+20, got, want)
		}
	}
}

func FuzzDatagram(f *testing.F) {
	b := make([]byte, DatagramLen)
	(&Datagram{Dst: 5, Src: 6, QKey: 7}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again Datagram
		if d.Parse(b) != nil {
			return
		}
		out := make([]byte, DatagramLen)
		d.Put(out)
		if err := again.Parse(out); err != nil || again != d {
			t.Fatalf("%+v became %+v: %v", d, again, err)
		}
	})
}
