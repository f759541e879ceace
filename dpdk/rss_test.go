package dpdk

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// toeplitz computes the hash as defined in Microsoft's "RSS hashing functions".
func toeplitz(key, input []byte) (hash uint32) {
	window := uint64(binary.BigEndian.Uint32(key)) << 32
	for i, b := range input {
		next := byte(0)
		if i+4 < len(key) {
			next = key[i+4]
		}
		window |= uint64(next) << 24
		for bit := 7; bit >= 0; bit-- {
			if b>>bit&1 == 1 {
				hash ^= uint32(window >> 32)
			}
			window <<= 1
		}
	}
	return hash
}

func hashed(src, dst netip.AddrPort) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(slices.Concat(src.Addr().AsSlice(),
		dst.Addr().AsSlice()), src.Port()), dst.Port())
}

// TestToeplitz: Microsoft's "Verifying the RSS hash calculation".
func TestToeplitz(t *testing.T) {
	key, err := hex.DecodeString("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		src, dst string
		want     uint32
	}{
		{"66.9.149.187:2794", "161.142.100.80:1766", 0x51ccc178},
		{"199.92.111.2:14230", "65.69.140.83:4739", 0xc626b0ea},
		{"[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x40207d3d},
	} {
		if got := toeplitz(key, hashed(netip.MustParseAddrPort(c.src), netip.MustParseAddrPort(c.dst))); got != c.want {
			t.Errorf("%s to %s: %#x, expected %#x", c.src, c.dst, got, c.want)
		}
	}
}

// TestRSS: only the port number determines the queue, whatever the rest of the packet, and with redirection
// tables of any length.
func TestRSS(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	address := func(ipv6 bool) netip.Addr {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], r.Uint64())
		binary.BigEndian.PutUint64(b[8:], r.Uint64())
		if ipv6 {
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	for _, ipv6 := range []bool{false, true} {
		for _, source := range []bool{false, true} {
			key := rssKey(source, ipv6)
			table := rssTable(func(number int) int { return number % 3 })
			for range 10000 {
				src, dst := netip.AddrPortFrom(address(ipv6), uint16(r.Uint32())),
					netip.AddrPortFrom(address(ipv6), uint16(r.Uint32()))
				number := dst.Port()
				if source {
					number = src.Port()
				}
				entry := toeplitz(key[:], hashed(src, dst)) % 512 // entry of the device's redirection table
				if got, want := table[entry%uint32(len(table))], uint8(number&7%3); got != want {
					t.Fatalf("ipv6 %v, source %v: %v to %v: queue %d, expected %d", ipv6, source, src, dst, got, want)
				}
			}
		}
	}
}
