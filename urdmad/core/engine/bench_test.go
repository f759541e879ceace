package engine_test

import (
	"fmt"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// BenchmarkSegments measures what a segment costs both engines together: cut,
// headers, parse, reliability, placement, acknowledgement and completion. The
// ports copy each frame once, in place of a NIC.
func BenchmarkSegments(b *testing.B) {
	for _, mtu := range []int{1500, 9000} {
		for _, c := range []struct {
			name string
			size int
			op   uint32
		}{
			{"write", 64 << 10, abi.WRRDMAWrite}, {"write64", 64, abi.WRRDMAWrite},
			{"send", 64 << 10, abi.WRSend}, {"send64", 64, abi.WRSend}, {"read", 64 << 10, abi.WRRDMARead},
		} {
			b.Run(fmt.Sprintf("%s/mtu%d", c.name, mtu),
				func(b *testing.B) { benchmark(b, enginetest.Options{MTU: mtu}, c.size, c.op, false) })
		}
	}
	b.Run("roce/write", func(b *testing.B) {
		benchmark(b, enginetest.Options{RoCE: true}, 64<<10, abi.WRRDMAWrite,
			false)
	})
	b.Run("roce/write64", func(b *testing.B) { benchmark(b, enginetest.Options{RoCE: true}, 64, abi.WRRDMAWrite, false) })
	b.Run("datagrams/write", func(b *testing.B) {
		benchmark(b, enginetest.Options{Datagrams: true}, 64<<10,
			abi.WRRDMAWrite, false)
	})
	b.Run("local write", func(b *testing.B) { benchmark(b, enginetest.Options{}, 64<<10, abi.WRRDMAWrite, true) })
	b.Run("local write64", func(b *testing.B) { benchmark(b, enginetest.Options{}, 64, abi.WRRDMAWrite, true) })
	b.Run("local send64", func(b *testing.B) { benchmark(b, enginetest.Options{}, 64, abi.WRSend, true) })
}

func benchmark(b *testing.B, o enginetest.Options, size int, op uint32, local bool) {
	o.Seed, o.Pipe = 1, true
	w := enginetest.New(b, o)
	x, y := w.Pair(local, nil)
	src, dst := x.Client.Register(size, enginetest.ReadWrite), y.Client.Register(size, enginetest.ReadWrite)
	wr := enginetest.Write(1, dst, 0)
	wr.Opcode = op
	sge, box := []abi.SGE{src.SGE(0, size)}, []abi.SGE{dst.SGE(0, size)}
	cqes := make([]abi.CQE, 16)
	message := func(n int) {
		for posted, done := 0, 0; done < n; {
			for posted < n && posted-done < 16 {
				if op == abi.WRSend {
					y.Ring.RQ.Write(1, box)
					y.Ring.RQ.Publish()
				}
				x.Ring.SQ.Write(&wr, sge)
				x.Ring.SQ.Publish()
				x.Bell()
				posted++
			}
			w.Turn()
			done += x.Send.PollInto(cqes)
			for y.Recv.PollInto(cqes) > 0 {
			}
		}
	}
	message(200)
	before := w.A.Engine.Streams.SegmentsSent + w.B.Engine.Streams.SegmentsSent
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	message(b.N)
	b.StopTimer()
	if n := w.A.Engine.Streams.SegmentsSent + w.B.Engine.Streams.SegmentsSent - before; n > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/segment")
	}
}

// TestSteadyStateAllocatesNothing holds the hot paths to zero allocations.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, op := range []uint32{abi.WRRDMAWrite, abi.WRSend, abi.WRRDMARead} {
		for _, local := range []bool{false, true} {
			w := enginetest.New(t, enginetest.Options{Seed: 1, Pipe: true, NoCapture: true})
			x, y := w.Pair(local, nil)
			src, dst := x.Client.Register(1<<16, enginetest.ReadWrite), y.Client.Register(1<<16, enginetest.ReadWrite)
			wr := enginetest.Write(1, dst, 0)
			wr.Opcode = op
			sge, box := []abi.SGE{src.SGE(0, 1<<16)}, []abi.SGE{dst.SGE(0, 1<<16)}
			cqes := make([]abi.CQE, 16)
			one := func() {
				if op == abi.WRSend {
					y.Ring.RQ.Write(1, box)
					y.Ring.RQ.Publish()
				}
				x.Ring.SQ.Write(&wr, sge)
				x.Ring.SQ.Publish()
				x.Bell()
				for x.Send.PollInto(cqes) == 0 {
					w.Turn()
				}
				y.Recv.PollInto(cqes)
			}
			for range 100 {
				one()
			}
			if n := testing.AllocsPerRun(200, one); n != 0 {
				t.Errorf("opcode %d local %v: %v allocations a message of 64 KiB", op, local, n)
			}
		}
	}
}
