package memif

import (
	"fmt"
	"testing"

	"urdma/dpdk/port"
)

// BenchmarkBothSides measures a frame's cost on both sides together, in one thread, without cache line
// transfers and without waiting for another core.
func BenchmarkBothSides(b *testing.B) {
	for _, c := range []struct {
		size int
		full bool
	}{{64, false}, {1500, false}, {1500, true}, {9000, true}} {
		for _, toServer := range []bool{true, false} {
			name := fmt.Sprintf("%d bytes, copied %v, to server %v", c.size, c.full, toServer)
			b.Run(name, func(b *testing.B) { bothSides(b, 1, c.size, c.full, toServer) })
		}
	}
}

// BenchmarkTwoRings does the same with two queues on both sides; one of them sends bursts on both rings in
// turn.
func BenchmarkTwoRings(b *testing.B) {
	for _, size := range []int{64, 1500, 9000} {
		for _, toServer := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d bytes, to server %v", size, toServer),
				func(b *testing.B) { bothSides(b, 2, size, true, toServer) })
		}
	}
}

func bothSides(b *testing.B, queues, size int, full, toServer bool) {
	path := "@urdma-bench-" + b.Name()
	if len(path) > 100 {
		path = path[:100]
	}
	s, err := Open(Options{SocketPath: path, Server: true, MTU: 9000, Queues: queues, Ring: ringOf})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := Open(Options{SocketPath: path, MTU: max(1500, size), Queues: queues, Ring: ringOf})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for !c.Link() || !s.Link() {
	}
	from, to := c, s
	if !toServer {
		from, to = to, from
	}
	out := from.Queue(0)
	private := make([]byte, size)
	tx, rx := make([]port.Packet, 32), make([]port.Packet, 32)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	for done, burst := 0, 0; done < b.N; burst++ {
		private[0] = byte(burst % queues)
		n := out.Alloc(tx)
		for i := range tx[:n] {
			tx[i].Data = tx[i].Data[:size]
			if full {
				copy(tx[i].Data, private)
			}
		}
		out.Tx(tx[:n])
		out.Flush()
		in := to.Queue(burst % queues)
		k := in.Rx(rx)
		if full {
			for i := range rx[:k] {
				copy(private, rx[i].Data)
			}
		}
		in.Free(rx[:k])
		done += k
	}
}
