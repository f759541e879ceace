package netdev

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// test/e2e tests programs on real interfaces.
func TestNoXDP(t *testing.T) {
	lo, err := ByName("lo")
	if err != nil {
		t.Skipf("SKIPPED: no interface lo: %v", err)
	}
	defer lo.Close()
	if x, err := lo.XDP(); err != nil || x != (XDP{}) {
		t.Errorf("lo: %+v, %v", x, err)
	}
	none, err := ByIndex(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if x, err := none.XDP(); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an interface that is not there: %+v, %v", x, err)
	}
}

// attribute is a netlink attribute, padded.
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// TestXDPOf: the program is found among other attributes, with its mode; truncated attributes or those with
// an invalid length are ignored.
func TestXDPOf(t *testing.T) {
	id := binary.NativeEndian.AppendUint32(nil, 77)
	for kind, want := range map[uint16]string{unix.IFLA_XDP_DRV_PROG_ID: "xdp", unix.IFLA_XDP_SKB_PROG_ID: "xdpgeneric",
		unix.IFLA_XDP_HW_PROG_ID: "xdpoffload"} {
		nest := append(attribute(unix.IFLA_XDP_ATTACHED, []byte{1}), attribute(kind, id)...)
		link := append(attribute(unix.IFLA_IFNAME, []byte("veth0\x00")), attribute(unix.IFLA_XDP|unix.NLA_F_NESTED, nest)...)
		if x := xdpOf(link); x != (XDP{ID: 77, Mode: want}) {
			t.Errorf("%+v, want 77 of mode %s", x, want)
		}
		for cut := range link {
			if x := xdpOf(link[:cut]); x != (XDP{}) {
				t.Errorf("%+v in the first %d bytes", x, cut)
			}
		}
	}
	if x := xdpOf([]byte{0, 0, byte(unix.IFLA_XDP), 0, 1, 2, 3, 4}); x != (XDP{}) {
		t.Errorf("%+v of an attribute of no bytes", x)
	}
}
