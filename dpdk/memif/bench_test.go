package memif

import (
	"fmt"
	"testing"

	"urdma/dpdk/port"
)

// BenchmarkBothSides is the cost of a frame on both sides together, in one
// thread: no cache line travels, no core is waited for. bench/memif measures
// two processes.
func BenchmarkBothSides(b *testing.B) {
	for _, c := range []struct {
		size int
		full bool
	}{{64, false}, {1500, false}, {1500, true}, {9000, true}} {
		for _, toServer := range []bool{true, false} {
			name := fmt.Sprintf("%d bytes, copied %v, to server %v", c.size, c.full, toServer)
			b.Run(name, func(b *testing.B) { bothSides(b, c.size, c.full, toServer) })
		}
	}
}

func bothSides(b *testing.B, size int, full, toServer bool) {
	path := "@urdma-bench-" + b.Name()
	if len(path) > 100 {
		path = path[:100]
	}
	s, err := Open(Options{SocketPath: path, Server: true, MTU: 9000})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := Open(Options{SocketPath: path, MTU: max(1500, size)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for !c.Link() || !s.Link() {
	}
	from, to := c.Queue(0), s.Queue(0)
	if !toServer {
		from, to = to, from
	}
	private := make([]byte, size)
	tx, rx := make([]port.Packet, 32), make([]port.Packet, 32)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := from.Alloc(tx)
		for i := range tx[:n] {
			tx[i].Data = tx[i].Data[:size]
			if full {
				copy(tx[i].Data, private)
			}
		}
		from.Tx(tx[:n])
		from.Flush()
		k := to.Rx(rx)
		if full {
			for i := range rx[:k] {
				copy(private, rx[i].Data)
			}
		}
		to.Free(rx[:k])
		done += k
	}
}
