package rawpacket

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"urdma/verbs/abi"
	"urdma/wire"
)

// frame reads a frame in hexadecimal; spaces separate its headers.
func frame(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	macs = "0200000000bb 0200000000aa "
	ip4  = "4500001e 1234 4000 40 11 0000 0a000001 0a000002 "
	ip6  = "6ab12345 000a 11 3f fd000000000000000000000000000001 fd000000000000000000000000000002 "
	udp  = "04d2 162e 000a 0000 abcd"
)

// TestFields: the positions are those that urdma_abi.h states.
func TestFields(t *testing.T) {
	v4 := "0a000001 0a000002 11 00 40 02 " + strings.Repeat("00", 28)
	v6 := "fd000000000000000000000000000001 fd000000000000000000000000000002 00012345 11 ab 3f 00 "
	for _, c := range []struct {
		name, frame, key string
		layers           uint32
	}{
		{"another protocol", macs + "88b5 01020304", macs + "88b5 0000" + strings.Repeat("00", 48), 0},
		{"IPv4, UDP", macs + "0800 " + ip4 + udp, macs + "0800 0000" + v4 + "162e04d2 00000000",
			abi.FlowIPv4 | abi.FlowUDP},
		{"a tag", macs + "8100 bc0c 0800 " + ip4 + udp, macs + "0800 bc0c" + v4 + "162e04d2 00000000",
			abi.FlowVLAN | abi.FlowIPv4 | abi.FlowUDP},
		{"two tags", macs + "88a8 0001 8100 bc0c 88b5 00", macs + "88b5 bc0c" + strings.Repeat("00", 48), abi.FlowVLAN},
		{"half a tag", macs + "8100 bc0c 08", macs + "8100 0000" + strings.Repeat("00", 48), 0},
		{"IPv6, TCP", macs + "86dd " + strings.Replace(ip6, "000a 11", "000a 06", 1) + udp, macs + "86dd 0000" +
			strings.Replace(v6, "12345 11", "12345 06", 1) + "162e04d2 00000000", abi.FlowIPv6 | abi.FlowTCP},
		{"a later fragment", macs + "0800 " + strings.Replace(ip4, "4000 40", "4001 40", 1) + udp,
			macs + "0800 0000" + v4 + strings.Repeat("00", 8), abi.FlowIPv4},
		{"IPv4 without its end", macs + "0800 4500", macs + "0800 0000" + strings.Repeat("00", 48), 0},
		{"version 5", macs + "0800 5" + ip4[1:] + udp, macs + "0800 0000" + strings.Repeat("00", 48), 0},
	} {
		want := [abi.FlowKey]byte(frame(t, c.key))
		if k, layers := fields(frame(t, c.frame)); k != keyOf(&want) || layers != c.layers {
			t.Errorf("%s: layers %#x, want %#x; key %x, want %x", c.name, layers, c.layers, k, keyOf(&want))
		}
	}
}

// TestAccess: what a port with RAW_NON_IP lets a client send and receive.
func TestAccess(t *testing.T) {
	mac := wire.MAC{2, 0, 0, 0, 0, 0xaa}
	for _, c := range []struct {
		name, frame   string
		sent, arrives bool
	}{
		{"an experimental EtherType", macs + "88b5 00", true, true},
		{"a length", macs + "0004 42420300", true, true},
		{"a length and nothing else", macs + "0000", true, true},
		{"a broadcast", "ffffffffffff 0200000000aa 88b5", true, true},
		{"another source", "0200000000bb 0200000000ab 88b5 00", false, true},
		{"a bridge's protocol", "0180c2000003 0200000000aa 888e 00", false, true},
		{"IPv4", macs + "0800 " + ip4 + udp, false, false},
		{"IPv6", macs + "86dd " + ip6 + udp, false, false},
		{"ARP", "ffffffffffff 0200000000aa 0806 0001", false, false},
		{"a VLAN", macs + "8100 0001 88b5 00", false, false},
		{"two VLANs", macs + "88a8 0001 8100 0001 88b5 00", false, false},
		{"an old form of two VLANs", macs + "9100 0001", false, false},
		{"RoCE v1", macs + "8915 60", false, false},
		{"PAUSE", macs + "8808 0001 ffff", false, false},
		{"IP behind SNAP", macs + "0026 aaaa03 000000 0800 " + ip4, false, false},
		{"half a header", macs + "88", false, false},
		{"nothing", "", false, false},
	} {
		b := frame(t, c.frame)
		head := b[:min(len(b), wire.MaxHeaderLen)]
		if got := maySend(abi.RawNonIP, b, mac); got != c.sent {
			t.Errorf("%s: sent: %v", c.name, got)
		}
		if got := mayReceive(abi.RawNonIP, head); got != c.arrives {
			t.Errorf("%s: arrives: %v", c.name, got)
		}
		whole := len(b) >= wire.EthernetLen
		if maySend(abi.RawAll, b, mac) != whole || mayReceive(abi.RawAll, head) != whole {
			t.Errorf("%s: refused where all frames are allowed", c.name)
		}
		if maySend(abi.RawOff, b, mac) || mayReceive(abi.RawOff, head) {
			t.Errorf("%s: allowed where raw packets are off", c.name)
		}
	}
}

// FuzzFields: a stranger's frame has at most the layers whose fields lie in it, and a client's flow that demands
// exactly these fields matches it.
func FuzzFields(f *testing.F) {
	for _, text := range []string{"", macs + "0800 " + ip4 + udp, macs + "8100 bc0c 86dd " + ip6 + udp,
		macs + "0800 4f00", macs + "8100", macs + strings.Repeat("88a80001", 8)} {
		f.Add(frame(f, text), []byte{0xff})
	}
	f.Fuzz(func(t *testing.T, b, mask []byte) {
		head := b[:min(len(b), wire.MaxHeaderLen)]
		if !mayReceive(abi.RawAll, head) {
			return
		}
		k, layers := fields(head)
		if k2, again := fields(bytes.Clone(head)); k2 != k || again != layers {
			t.Fatal("not the same fields twice")
		}
		if layers&(abi.FlowTCP|abi.FlowUDP) != 0 && layers&(abi.FlowIPv4|abi.FlowIPv6) == 0 ||
			layers&(abi.FlowIPv4|abi.FlowIPv6) != 0 && len(b) < wire.EthernetLen+wire.IPv4Len {
			t.Fatalf("layers %#x of %x", layers, b)
		}
		m := abi.CreateFlowRequest{Layers: layers}
		copy(m.Mask[:], mask)
		for i, v := range k {
			binary.NativeEndian.PutUint64(m.Value[8*i:], v)
		}
		flow := new(Stack).NewFlow(nil, 0, &m)
		if !flow.matches(&k, layers) {
			t.Fatalf("a frame's own fields do not match it: %x", b)
		}
		_, _ = maySend(abi.RawNonIP, b, wire.MAC{}), mayReceive(abi.RawNonIP, head)
	})
}

// TestMutations: whatever is in a frame's header, however short it is, its fields can be read, and it matches a flow for
// exactly these.
func TestMutations(t *testing.T) {
	frames := [][]byte{}
	for _, from := range []string{"10.0.0.2", "fd00::2"} {
		src := netip.AddrPortFrom(netip.MustParseAddr(from), 7)
		b := make([]byte, wire.UDP6HeaderLen+64)
		plain := b[:wire.PutUDP(b, src, src, make([]byte, 64))]
		tagged := slices.Concat(plain[:12], []byte{0x81, 0, 0x20, 5, 0x88, 0xa8, 0, 6}, plain[12:])
		frames = append(frames, plain, tagged)
	}
	for _, f := range frames {
		for at := 0; at < len(f); at++ {
			for _, v := range []byte{0, 1, f[at] + 1, f[at] - 1, f[at] ^ 0x80, 0x45, 0x4f, 0x60, 6, 17, 0x81, 0x88, 0xff} {
				changed := slices.Clone(f)
				changed[at] = v
				for _, n := range []int{wire.EthernetLen, wire.EthernetLen + 3, at + 1, at + 4, len(f)} {
					head := changed[:min(len(f), max(wire.EthernetLen, n), wire.MaxHeaderLen)]
					k, layers := fields(head)
					own := &Flow{layers: layers, value: k}
					for i := range own.mask {
						own.mask[i] = ^uint64(0)
					}
					if !own.matches(&k, layers) {
						t.Fatalf("% x does not match itself", head)
					}
					_, _ = mayReceive(abi.RawNonIP, head[:n%(len(head)+1)]), maySend(abi.RawNonIP, head[:n%(len(head)+1)], wire.MAC{})
				}
			}
		}
	}
}
