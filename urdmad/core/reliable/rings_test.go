package reliable_test

import (
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// TestIdleHoldsLittle: a connection has records for few segments until more are outstanding, then for as
// many as the window allows, and for few again once all are acknowledged; the next connection reuses the
// returned ring.
func TestIdleHoldsLittle(t *testing.T) {
	rings := new(reliable.Rings)
	conn := func() *reliable.Conn {
		c := new(reliable.Conn)
		c.Init(reliable.Config{LocalISN: 1000, PeerISN: 5000, Window: 1024, RecvWindow: 1024, InitialCwnd: 1024,
			Rings: rings})
		return c
	}
	a, b := conn(), conn()
	idle := a.Records()
	if idle > 64 {
		t.Fatalf("an idle connection has records for %d segments", idle)
	}
	burst := func(c *reliable.Conn, n int) {
		for range n {
			c.Send(0, 1, 0)
		}
		if c.Records() < n || c.Records() > 2*max(n, idle) {
			t.Errorf("%d segments are outstanding, and there are records for %d", n, c.Records())
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if err := c.OnAck(10, c.Next(), 1024); err != nil {
			t.Fatal(err)
		}
		if c.Records() != idle {
			t.Errorf("all is acknowledged, and there are records for %d segments", c.Records())
		}
	}
	burst(a, 1024)
	if n := testing.AllocsPerRun(10, func() { burst(b, 1024); burst(a, 1024) }); n != 0 {
		t.Errorf("%v allocations while one connection after the other is busy", n)
	}
}

// TestWideIdleHoldsLittle: a window of 65,536 costs an idle connection no more memory either, in either
// direction, after all its segments are acknowledged and delivered.
func TestWideIdleHoldsLittle(t *testing.T) {
	const window = reliable.MaxWindow
	c := new(reliable.Conn)
	c.Init(reliable.Config{LocalISN: 1000, PeerISN: 5000, Window: window, RecvWindow: window,
		Rings: new(reliable.Rings)})
	if err := c.OnAck(1, 1000, window); err != nil {
		t.Fatal(err)
	}
	sent, held := c.Records(), c.HeldRoom()
	if sent > 64 || held > 64 {
		t.Fatalf("an idle connection has records for %d and %d segments", sent, held)
	}
	busy := func() {
		for range window {
			c.Send(2, 1, 0)
		}
		ack, _ := c.Header()
		for i := uint32(window - 1); ; i-- {
			if c.Arrive(3, ack.Add(i), false); i == 0 {
				break
			}
		}
		for _, ok := c.NextHeld(); ok; _, ok = c.NextHeld() {
		}
		if next, _ := c.Header(); next != ack.Add(window) {
			t.Fatalf("in order is %d, want %d", next, ack.Add(window))
		}
		if err := c.OnAck(4, c.Next(), window); err != nil {
			t.Fatal(err)
		}
		if c.Records() != sent || c.HeldRoom() != held {
			t.Errorf("all is through, and there are records for %d and %d segments", c.Records(), c.HeldRoom())
		}
	}
	busy()
	if n := testing.AllocsPerRun(3, busy); n != 0 {
		t.Errorf("%v allocations for windows that there were before", n)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestGrowingKeepsOrder: whichever segments are lost, held and resent while the ring grows, each keeps its record:
// when it is resent its token is returned, the oldest segment first.
func TestGrowingKeepsOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := new(reliable.Conn)
		c.Init(reliable.Config{LocalISN: wire.PSN(r.Uint32()), Window: 256, RecvWindow: 256, PeerWindow: 256,
			InitialCwnd: 256,
			Rings:       new(reliable.Rings)})
		now, una := reliable.Time(1), c.Next()
		for range 40 {
			for n := min(r.IntN(40), c.CanSend(now)); n > 0; n-- {
				c.Send(now, 1, uint64(c.Next()))
			}
			now += 20 * us
			if out := int(c.Next().Sub(una)); out > 4 {
				first := una.Add(1 + r.Uint32N(uint32(out-2)))
				_ = c.OnSack(now, una, 256, []wire.SackRun{{First: first, End: c.Next()}})
			}
			for psn, token, ok := c.Retransmit(now); ok; psn, token, ok = c.Retransmit(now) {
				if token != uint64(psn) {
					t.Fatalf("seed %d: PSN %d is resent as %d", seed, psn, token)
				}
			}
			if err := c.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if r.IntN(3) == 0 {
				una = una.Add(r.Uint32N(uint32(c.Next().Sub(una)) + 1))
				_ = c.OnAck(now, una, 256)
			}
		}
	}
}

// fatConn is a connection of 65,536 segments that takes rings from r.
func fatConn(r *reliable.Rings) *reliable.Conn {
	c := new(reliable.Conn)
	c.Init(reliable.Config{Window: reliable.MaxWindow, RecvWindow: 1024, Rings: r})
	return c
}

// burstOf sends n segments of a connection and acknowledges them all.
func burstOf(t *testing.T, c *reliable.Conn, n int) {
	for range n {
		c.Send(2, 1, 0)
	}
	if err := c.OnAck(3, c.Next(), reliable.MaxWindow); err != nil {
		t.Fatal(err)
	}
}

// TestLongRingsLeaveRoomForOthers: after many connections have used a long window, those with an ordinary one
// allocate as little as before.
func TestLongRingsLeaveRoomForOthers(t *testing.T) {
	rings := new(reliable.Rings)
	var fat []*reliable.Conn
	for range 6 {
		fat = append(fat, fatConn(rings))
		for _, c := range fat { // all at once
			for range reliable.MaxWindow - int(c.Next().Sub(c.Acked())) {
				c.Send(2, 1, 0)
			}
		}
	}
	for _, c := range fat {
		burstOf(t, c, 0)
	}
	var usual []*reliable.Conn
	for range 20 {
		c := new(reliable.Conn)
		c.Init(reliable.Config{Window: 1024, RecvWindow: 1024, Rings: rings})
		usual = append(usual, c)
	}
	busy := func() {
		for _, c := range usual {
			for range 1000 {
				c.Send(2, 1, 0)
			}
		}
		for _, c := range usual {
			burstOf(t, c, 0)
		}
	}
	busy()
	if n := testing.AllocsPerRun(5, busy); n != 0 {
		t.Errorf("%v allocations of usual windows where others had long ones", n)
	}
}

// TestShortBurstTakesShortRing: a connection that once used a long window doesn't take as many records for each later
// short burst.
func TestShortBurstTakesShortRing(t *testing.T) {
	c := fatConn(new(reliable.Rings))
	burstOf(t, c, reliable.MaxWindow)
	burstOf(t, c, 40)
	for range 40 {
		c.Send(2, 1, 0)
	}
	if c.Records() > 64 {
		t.Errorf("records for %d segments, of which 40 are under way, as before", c.Records())
	}
}
