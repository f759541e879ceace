package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// BenchmarkPairs measures how the cost of a message grows with the number of connections between two hosts, if each
// message belongs to another connection than the one before: the worst case for caches.
func BenchmarkPairs(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		for _, n := range []int{1, 16, 256, 1024, 4096, 16000} {
			b.Run(fmt.Sprintf("%d/%dpairs", size, n), func(b *testing.B) { messagesInTurn(b, size, n) })
		}
	}
}

// clientPairs is how many queue pairs a client has; it has 4,096 doorbells.
const clientPairs = 4000

// manyPairs are connections whose clients have one completion queue each.
type manyPairs struct {
	pairs    []*enginetest.QP
	sends    []*enginetest.CQ
	from, to []*enginetest.Region // by client
}

func connectMany(w *enginetest.World, n, size int) *manyPairs {
	m := &manyPairs{}
	room := &abi.QPCap{MaxSendWR: 4, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	for len(m.pairs) < n {
		x, y := w.A.NewClient(), w.B.NewClient()
		sends, none, others := x.NewCQ(256), x.NewCQ(1), y.NewCQ(1)
		m.sends = append(m.sends, sends)
		m.from = append(m.from, x.Register(size, enginetest.ReadWrite))
		m.to = append(m.to, y.Register(size, enginetest.ReadWrite))
		for range min(clientPairs, n-len(m.pairs)) {
			a, b := x.NewQPOn(room, sends, none), y.NewQPOn(room, others, others)
			enginetest.Join(a, b, 0)
			m.pairs = append(m.pairs, a)
		}
	}
	return m
}

func messagesInTurn(b *testing.B, size, n int) {
	w := enginetest.New(b, enginetest.Options{Seed: 1, Pipe: true})
	m := connectMany(w, n, size)
	next, cqes := 0, make([]abi.CQE, 64)
	messages := func(n int) {
		for posted, done := 0, 0; done < n; {
			for ; posted < n && posted-done < 16; posted++ {
				q, client := m.pairs[next], next/clientPairs
				wr := enginetest.Write(uint64(posted), m.to[client], 0)
				sge := m.from[client].SGE(0, size)
				if !q.Ring.SQ.Write(&wr, []abi.SGE{sge}) {
					break // with few connections the queue is full
				}
				q.Ring.SQ.Publish()
				q.Bell()
				next = (next + 1) % len(m.pairs)
			}
			w.Turn()
			for _, q := range m.sends {
				done += q.PollInto(cqes)
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	messages(4 * n)
	before, begin := w.A.Engine.Streams.SegmentsSent, threadTime()
	b.SetBytes(int64(size))
	b.ResetTimer()
	messages(b.N)
	b.StopTimer()
	b.ReportMetric(float64(threadTime()-begin)/float64(w.A.Engine.Streams.SegmentsSent-before), "cpu-ns/segment")
}
