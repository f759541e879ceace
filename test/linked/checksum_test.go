package linked

import (
	"encoding/hex"
	"strings"
	"testing"

	"urdma/dpdk/port"
)

// golden is a frame with both checksums right: Ethernet, IPv4
// 10.0.0.1 to 10.0.0.2, UDP 1000 to 2000, payload "abcde" (odd length).
const golden = "02 00 00 00 00 0b 02 00 00 00 00 0a 08 00 " +
	"45 00 00 21 00 01 00 00 40 11 66 c9 0a 00 00 01 0a 00 00 02 " +
	"03 e8 07 d0 00 0d b6 52 61 62 63 64 65"

func goldenFrame(t *testing.T) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(golden, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChecksumFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(b []byte)
		want port.Flags
	}{
		{"right", func([]byte) {}, port.RxIPv4Good | port.RxUDPGood},
		{"payload", func(b []byte) { b[44] ^= 1 }, port.RxIPv4Good | port.RxUDPBad},
		{"ttl", func(b []byte) { b[22]-- }, port.RxIPv4Bad | port.RxUDPGood},
		{"none", func(b []byte) { b[40], b[41] = 0, 0 }, port.RxIPv4Good},
		{"arp", func(b []byte) { b[13] = 6 }, 0},
		{"length", func(b []byte) { b[16] = 9 }, 0},
	} {
		b := goldenFrame(t)
		c.do(b)
		if got := verify(b); got != c.want {
			t.Errorf("%s: flags %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestFillUDP(t *testing.T) {
	b := goldenFrame(t)
	b[40], b[41] = 0, 0
	fillUDP(b)
	if got, want := hex.EncodeToString(b), hex.EncodeToString(goldenFrame(t)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
