package udp

import (
	"fmt"
	"testing"

	"urdma/dpdk/port"
)

// BenchmarkMessages sends and receives messages of 64 KiB on one thread; their segments have equal lengths,
// or the last is shorter.
func BenchmarkMessages(b *testing.B) {
	const size, segments, messages = 1472, 46, 3
	for _, last := range []int{size, 806} {
		b.Run(fmt.Sprint("last=", last), func(b *testing.B) {
			from, to := openBench(b), openBench(b)
			var p, got [port64]port.Packet
			b.SetBytes(messages * 65536)
			for b.Loop() {
				for range messages {
					if n := from.Alloc(p[:segments]); n != segments {
						b.Fatalf("Alloc gave %d", n)
					}
					for i := range segments {
						p[i].Data, p[i].Peer = p[i].Data[:size], to.at
					}
					p[segments-1].Data = p[segments-1].Data[:last]
					from.Tx(p[:segments])
				}
				from.Flush()
				for left := messages * segments; left > 0; {
					n := to.Rx(got[:])
					to.Free(got[:n])
					left -= n
				}
			}
		})
	}
}

const port64 = 64

func openBench(b *testing.B) tested { return openFor(b, 1500) }
