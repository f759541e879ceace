package reliable_test

import (
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// sendAcked sends n segments and acknowledges them, as in a stream.
func sendAcked(c *reliable.Conn, now reliable.Time, n int) {
	for range n {
		c.Send(now, 1408, 0)
		c.WantAR(true)
	}
	_ = c.OnAck(now+20*us, c.Next(), 1024)
}

// receive receives n segments in order and acknowledges when that is due.
func receive(c *reliable.Conn, now reliable.Time, psn wire.PSN, n int) wire.PSN {
	for range n {
		c.Arrive(now, psn, false)
		c.NextHeld()
		psn = psn.Add(1)
	}
	if c.AckDue(now) != reliable.AckNone {
		c.Header()
	}
	return psn
}

// loseOne sends 64 segments, one of which is lost, reported by sacks and resent.
func loseOne(c *reliable.Conn, now reliable.Time, runs []wire.SackRun) {
	first := c.Next()
	for range 64 {
		c.Send(now, 1408, 0)
	}
	for n := wire.PSN(16); n <= 64; n += 16 {
		runs[0] = wire.SackRun{First: first.Add(8), End: first + n}
		_ = c.OnSack(now+20*us, first.Add(7), 1024, runs)
	}
	for _, _, ok := c.Retransmit(now + 20*us); ok; _, _, ok = c.Retransmit(now + 20*us) {
	}
	_ = c.OnAck(now+40*us, c.Next(), 1024)
}

// holdOne receives 64 segments; the first comes last.
func holdOne(c *reliable.Conn, now reliable.Time, psn wire.PSN, runs []wire.SackRun) wire.PSN {
	for i := range uint32(63) {
		c.Arrive(now, psn.Add(i+1), false)
		if c.AckDue(now) == reliable.AckSack {
			c.Header()
			runs = c.SackRuns(runs[:0])
		}
	}
	c.Arrive(now, psn, false)
	for _, ok := c.NextHeld(); ok; _, ok = c.NextHeld() {
	}
	if c.AckDue(now) != reliable.AckNone {
		c.Header()
	}
	return psn.Add(64)
}

func TestNoAllocations(t *testing.T) {
	c := newConn(1024)
	runs := make([]wire.SackRun, 1, wire.MaxSackRuns)
	now, psn := reliable.Time(0), wire.PSN(5000)
	allocs := testing.AllocsPerRun(100, func() {
		now += 100 * us
		sendAcked(c, now, 32)
		loseOne(c, now, runs)
		psn = receive(c, now, psn, 32)
		psn = holdOne(c, now, psn, runs)
		if err := c.Tick(now); err != nil {
			t.Fatal(err)
		}
		c.Deadline()
	})
	if allocs != 0 {
		t.Errorf("%v allocations a round, want none", allocs)
	}
	if s := c.Stats(); s.Resent == 0 || s.Held == 0 {
		t.Errorf("nothing was resent or held: %+v", s)
	}
}

// The operation of each benchmark is one segment.

func BenchmarkSendAck(b *testing.B) {
	c := newConn(1024)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 16 {
		sendAcked(c, reliable.Time(i)*us, 16)
	}
}

func BenchmarkSendAckEach(b *testing.B) {
	c := newConn(1024)
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		sendAcked(c, reliable.Time(i)*us, 1)
	}
}

func BenchmarkOnData(b *testing.B) {
	c := newConn(1024)
	psn := wire.PSN(5000)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 16 {
		psn = receive(c, reliable.Time(i)*us, psn, 16)
	}
}

func BenchmarkSendLossOf64(b *testing.B) {
	c := newConn(1024)
	runs := make([]wire.SackRun, 1)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		loseOne(c, reliable.Time(i)*us, runs)
	}
}

func BenchmarkOnDataLossOf64(b *testing.B) {
	c := newConn(1024)
	runs := make([]wire.SackRun, 0, wire.MaxSackRuns)
	psn := wire.PSN(5000)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		psn = holdOne(c, reliable.Time(i)*us, psn, runs)
	}
}

func BenchmarkTickDeadline(b *testing.B) {
	c := newConn(1024)
	c.Send(0, 1408, 0)
	b.ReportAllocs()
	for range b.N {
		_ = c.Tick(us)
		c.Deadline()
	}
}
