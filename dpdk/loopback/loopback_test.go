package loopback

import (
	"net/netip"
	"testing"

	"urdma/dpdk/port"
)

func TestTakesAllGivesNone(t *testing.T) {
	p := Open("lo0", [6]byte{}, 0, netip.MustParseAddr("10.1.2.3"))
	if p.Info().Wire || !p.Link() {
		t.Fatalf("info %+v", p.Info())
	}
	if mac := p.Info().MAC; mac != [6]byte{2, 0x6c, 10, 1, 2, 3} {
		t.Errorf("MAC %x, expected one of the port's address", mac)
	}
	pk := make([]port.Packet, 100)
	for range 20 {
		n := p.Queue(0).Alloc(pk)
		if n != 100 {
			t.Fatalf("Alloc gave %d: buffers leak", n)
		}
		for i := range pk {
			pk[i].Data = pk[i].Data[:60]
		}
		p.Queue(0).Free(pk[90:])
		if p.Queue(0).Tx(pk[:90]) != 90 || p.Queue(0).Rx(pk) != 0 {
			t.Fatal("a loopback takes everything and returns nothing")
		}
	}
}
