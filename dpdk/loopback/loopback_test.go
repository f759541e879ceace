package loopback

import (
	"testing"

	"urdma/dpdk/port"
)

func TestTakesAllGivesNone(t *testing.T) {
	p := Open("lo0", [6]byte{}, 0)
	if p.Info().Wire || !p.Link() {
		t.Fatalf("info %+v", p.Info())
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
