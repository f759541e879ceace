package trp_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestKeptInParts: segments kept behind a gap, or behind a message without a receive, are delivered in
// order, a part in each turn, and copies that arrive in the meantime are recognised.
func TestKeptInParts(t *testing.T) {
	const window, size, most = 2048, 100, 600
	for name, free := range map[string]func(l *enginetest.Line, gap func()){
		"behind a gap":               func(_ *enginetest.Line, gap func()) { gap() },
		"behind a lack of a receive": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 110, Window: window})
			s := w.Stranger()
			q := w.A.NewClient().NewQP(nil)
			sink := q.Client.Register(window*size, enginetest.ReadWrite)
			l := s.Dial(q, 0)
			q.Q.Connection().RNRRetry = 7
			first := l.PSN
			send := func() {
				l.Segment(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 1, Last: true}, make([]byte, size)...)
			}
			write := func(i int) {
				body := make([]byte, size)
				body[0] = byte(i)
				l.Segment(wire.DDP{Op: wire.OpWrite, Tagged: true, Last: true, STag: wire.STag(sink.STag),
					TO: sink.SGE(i*size, 0).Addr}, body...)
			}
			if free == nil {
				send()
			} else {
				l.PSN = l.PSN.Add(1)
				q.PostRecv(7, sink.SGE(0, size))
			}
			for i := 1; i < window-1; i++ {
				if write(i); i%16 == 0 {
					w.A.Engine.Turn(w.Now())
					w.Net.Advance(int64(w.Now()) + 20_000)
				}
			}
			w.Pass(time.Millisecond)
			placed := func() int { return int(q.Q.Stats.BytesRecv) / size }
			if n := placed(); n > 0 {
				t.Fatalf("%d segments are placed already", n)
			}
			if free != nil {
				end := l.PSN
				l.PSN = first
				free(l, send)
				l.PSN = end
			} else {
				q.PostRecv(7, sink.SGE(0, size))
			}
			end := l.PSN
			for turns := 0; placed() < window-1; turns++ {
				if turns == 1000 {
					t.Fatalf("%d segments of %d were placed", placed(), window-1)
				}
				l.PSN = first.Add(uint32(placed())) // the next one, and the one after it, once more
				for range 2 {
					i := int(l.PSN.Sub(first))
					write(max(i, 1))
				}
				l.PSN = end
				before := placed()
				w.A.Engine.Turn(w.Now())
				w.Net.Advance(int64(w.Now()) + 20_000)
				if n := placed() - before; n > most {
					t.Fatalf("%d segments were placed in one turn, expected %d at most", n, most)
				}
			}
			w.Pass(time.Millisecond)
			if n := placed(); n != window-1 {
				t.Errorf("%d segments were placed, expected %d", n, window-1)
			}
			for i := 1; i < window-1; i++ {
				if sink.Bytes[i*size] != byte(i) {
					t.Fatalf("segment %d has %d", i, sink.Bytes[i*size])
				}
			}
			s.Receive()
			var last wire.TRP
			if _, err := last.Parse(s.Got[len(s.Got)-1].Payload); err != nil || last.Ack != end {
				t.Errorf("acknowledged up to %d, expected %d: %v", last.Ack, end, err)
			}
			if st := q.Q.State(); st != abi.QPSRTS {
				t.Errorf("state %d", st)
			}
		})
	}
}

// TestCutOffInParts: when a port loses its address, some of its connections end in each turn, and finally all.
func TestCutOffInParts(t *testing.T) {
	const pairs, most = 300, 64
	w := enginetest.New(t, enginetest.Options{Seed: 111, Path: linked.Path{}})
	c, d := w.A.NewClient(), w.B.NewClient()
	var all []*enginetest.QP
	for range pairs {
		a := c.NewQP(nil)
		enginetest.Join(a, d.NewQP(nil), 1)
		all = append(all, a)
	}
	w.Pass(time.Millisecond)
	ended := func() (n int) {
		for _, a := range all {
			if a.Q.State() == abi.QPSErr {
				n++
			}
		}
		return n
	}
	w.A.Engine.Do(func() { w.A.Engine.Interface(0).Lost(wire.MAC{2}) })
	for turns := 0; ended() < pairs; turns++ {
		if turns == 1000 {
			t.Fatalf("%d connections of %d ended", ended(), pairs)
		}
		before := ended()
		w.A.Engine.Turn(w.Now())
		w.Net.Advance(int64(w.Now()) + 500)
		if n := ended() - before; n > most {
			t.Fatalf("%d connections ended in one turn, expected %d at most", n, most)
		}
	}
}
