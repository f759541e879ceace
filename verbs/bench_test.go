package verbs_test

import (
	"testing"
	"time"

	"urdma/verbs"
)

// BenchmarkPostAndPoll posts one inline RDMA Write and polls for it: both calls, and urdmad's work in
// between. It allocates nothing.
func BenchmarkPostAndPoll(b *testing.B) {
	p := connect(b, verbs.ConnOptions{}, verbs.ConnOptions{})
	there := memory(b, p.accepted, 4096, true)
	wr := verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: make([]byte, 8), Remote: there.Remote(0)}
	out := make([]verbs.Completion, 16)
	q := p.dialed.SendCQ()
	b.ReportAllocs()
	for b.Loop() {
		ok(b, p.dialed.PostSend(&wr))
		for {
			n, err := q.Poll(out)
			ok(b, err)
			if n > 0 {
				break
			}
		}
	}
}

// BenchmarkPost posts 64 Writes at a time with PostSends; one Write is one operation.
func BenchmarkPost(b *testing.B) {
	p := connect(b, verbs.ConnOptions{}, verbs.ConnOptions{})
	here, there := memory(b, p.dialed, 4096, true), memory(b, p.accepted, 4096, true)
	sge := []verbs.SGE{here.SGE(0, 64)}
	wrs := make([]verbs.SendWR, 64)
	for i := range wrs {
		wrs[i] = verbs.SendWR{Op: verbs.OpWrite, SGE: sge, Remote: there.Remote(0)}
	}
	wrs[63].Flags = verbs.Signaled
	out := make([]verbs.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		for n := 0; n < len(wrs); {
			m, _ := p.dialed.PostSends(wrs[n:]) // the queue was full
			n += m
		}
		for got := 0; got == 0; {
			var err error
			got, err = p.dialed.SendCQ().Poll(out)
			ok(b, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/write")
}

// BenchmarkEmptyPoll makes polls that find nothing, yields included.
func BenchmarkEmptyPoll(b *testing.B) {
	p := connect(b, verbs.ConnOptions{}, verbs.ConnOptions{})
	out := make([]verbs.Completion, 16)
	b.ReportAllocs()
	for b.Loop() {
		_, err := p.dialed.SendCQ().Poll(out)
		ok(b, err)
	}
}

// BenchmarkPingPong sends a message back and forth, with the waiting of Conn.
func BenchmarkPingPong(b *testing.B) {
	for name, spin := range map[string]time.Duration{"sleeping": 0, "polling": time.Millisecond} {
		b.Run(name, func(b *testing.B) { pingPong(b, spin) })
	}
}

func pingPong(b *testing.B, spin time.Duration) {
	p := connect(b, verbs.ConnOptions{Spin: spin}, verbs.ConnOptions{Spin: spin})
	ctx := b.Context()
	in := [2]*verbs.MR{memory(b, p.dialed, 64, true), memory(b, p.accepted, 64, true)}
	post := func(conn *verbs.Conn, m *verbs.MR) error {
		return conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{m.SGE(0, 64)}})
	}
	ok(b, post(p.accepted, in[1]))
	data := make([]byte, 16)
	go func() {
		for {
			if _, err := p.accepted.Recv(ctx); err != nil {
				return
			}
			if post(p.accepted, in[1]) != nil || p.accepted.SendBytes(ctx, data) != nil {
				return
			}
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		ok(b, post(p.dialed, in[0]))
		ok(b, p.dialed.SendBytes(ctx, data))
		_, err := p.dialed.Recv(ctx)
		ok(b, err)
	}
}
