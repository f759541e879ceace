package reliable_test

import (
	"errors"
	"math"
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

const us = reliable.Microsecond

// newConn makes a connection whose PSNs start at 1000 (ours) and
// 5000 (the peer's).
func newConn(window int) *reliable.Conn {
	c := new(reliable.Conn)
	c.Init(reliable.Config{
		LocalISN: 1000, PeerISN: 5000, Window: window, RecvWindow: window,
		PeerWindow: window, InitialCwnd: window, Rings: new(reliable.Rings),
	})
	return c
}

// TestImpossibleAcks: an impossible acknowledgement leaves the state unchanged, and is counted.
func TestImpossibleAcks(t *testing.T) {
	run := func(first, end wire.PSN) []wire.SackRun { return []wire.SackRun{{First: first, End: end}} }
	// 1000 to 1007 outstanding, 1004 to 1007 after the acknowledgement.
	tests := []struct {
		name string
		ack  wire.PSN
		runs []wire.SackRun
		want error
	}{
		{"never sent", 1009, nil, reliable.ErrAckRange},
		{"half the space ahead", 1004 + 1<<31, nil, reliable.ErrAckRange},
		{"older than a window", 1004 - 17, nil, reliable.ErrAckRange},
		{"overtaken", 1000, nil, nil},
		{"everything", 1008, nil, nil},
		{"run", 1004, run(1005, 1007), nil},
		{"run of an overtaken SACK", 1000, run(1002, 1006), nil},
		{"empty run", 1004, run(1005, 1005), reliable.ErrSackRange},
		{"backwards", 1004, run(1006, 1005), reliable.ErrSackRange},
		{"run never sent", 1004, run(1006, 1009), reliable.ErrSackRange},
		{"run at the acknowledgement", 1004, run(1004, 1006), reliable.ErrSackRange},
		{"run behind the acknowledgement", 1006, run(1004, 1005), reliable.ErrSackRange},
		{"run far away", 1004, run(1005+1<<31, 1006+1<<31), reliable.ErrSackRange},
		{"second run bad", 1004, append(run(1005, 1006), run(1007, 1020)...), reliable.ErrSackRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConn(16)
			for range 8 {
				c.Send(0, 100, 0)
			}
			if err := c.OnAck(20*us, 1004, 16); err != nil {
				t.Fatal(err)
			}
			before := c.Stats()
			err := c.OnSack(30*us, tt.ack, 16, tt.runs)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			after := c.Stats()
			if err != nil {
				before.BadAcks++
				if before != after {
					t.Errorf("changed\n%+v to\n%+v", before, after)
				}
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBeyondCredits: a segment beyond all credits ever sent is not accepted, even within the window; it is
// accepted once credits for it were sent.
func TestBeyondCredits(t *testing.T) {
	c := newConn(16)
	c.Arrive(0, 5000, false)
	if got := c.Arrive(0, 5016, false); got != reliable.Outside {
		t.Errorf("a segment past all credits: %v", got)
	}
	c.SetCredits(0)
	for psn := wire.PSN(5001); psn < 5016; psn++ {
		if got := c.Arrive(0, psn, false); got != reliable.Deliver {
			t.Errorf("PSN %d, allowed before the credits shrank: %v", psn, got)
		}
	}
	if got := c.Arrive(0, 5016, false); got != reliable.Outside {
		t.Errorf("the next in order, without credits: %v", got)
	}
	c.SetCredits(1)
	c.Header()
	if got := c.Arrive(0, 5016, false); got != reliable.Deliver {
		t.Errorf("with a credit: %v", got)
	}
}

func TestVerdicts(t *testing.T) {
	c := newConn(16)
	c.Arrive(0, 4999, false)
	c.Header() // allows up to 5015
	steps := []struct {
		psn  wire.PSN
		want reliable.Verdict
	}{
		{5000, reliable.Deliver},
		{5000, reliable.Duplicate},
		{5002, reliable.Hold},
		{5002, reliable.Duplicate},
		{5015, reliable.Hold}, // the last that credits allowed
		{5016, reliable.Outside},
		{5017, reliable.Outside},
		{5000 + 1<<31, reliable.Outside},
		{4999, reliable.Duplicate}, // not ours, but within a window behind
		{5001 - 4096, reliable.Duplicate},
		{5000 - 4096, reliable.Outside},
		{5001, reliable.Deliver},
	}
	for _, s := range steps {
		if got := c.Arrive(0, s.psn, false); got != s.want {
			t.Errorf("PSN %d: %v, want %v", s.psn, got, s.want)
		}
	}
	if psn, ok := c.NextHeld(); !ok || psn != 5002 {
		t.Errorf("NextHeld is %d, %v, want 5002", psn, ok)
	}
	if psn, ok := c.NextHeld(); ok {
		t.Errorf("NextHeld is %d, want none", psn)
	}
	if ack, credits := c.Header(); ack != 5003 || credits != 16 {
		t.Errorf("header is %d, %d, want 5003, 16", ack, credits)
	}
}

// TestSackRuns checks the order of runs: the most recent, then lowest first.
func TestSackRuns(t *testing.T) {
	c := newConn(128)
	for _, psn := range []wire.PSN{5002, 5003, 5010, 5006, 5007} {
		c.Arrive(0, psn, false)
	}
	want := []wire.SackRun{{First: 5006, End: 5008}, {First: 5002, End: 5004}, {First: 5010, End: 5011}}
	got := c.SackRuns(nil)
	if len(got) != len(want) {
		t.Fatalf("runs are %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("runs are %v, want %v", got, want)
		}
	}
	for psn := wire.PSN(5012); psn < 5120; psn += 2 {
		c.Arrive(0, psn, false)
	}
	got = c.SackRuns(got[:0])
	if len(got) != wire.MaxSackRuns || got[0] != (wire.SackRun{First: 5118, End: 5119}) || got[1].First != 5002 {
		t.Errorf("%d runs from %v", len(got), got[:2])
	}
	// If the most recent run has been delivered, the lowest run is first.
	c = newConn(128)
	for _, psn := range []wire.PSN{5010, 5006, 5001, 5000} {
		c.Arrive(0, psn, false)
	}
	for _, ok := c.NextHeld(); ok; _, ok = c.NextHeld() {
	}
	if got = c.SackRuns(got[:0]); len(got) != 2 || got[0].First != 5006 || got[1].First != 5010 {
		t.Errorf("runs are %v, want 5006 and 5010", got)
	}
}

func TestCanSend(t *testing.T) {
	c := newConn(16)
	if n := c.CanSend(0); n != 16 {
		t.Fatalf("CanSend is %d, want the window, 16", n)
	}
	if err := c.OnAck(0, 1000, 5); err != nil {
		t.Fatal(err)
	}
	if n := c.CanSend(0); n != 5 {
		t.Errorf("CanSend is %d, want the credits, 5", n)
	}
	for range 16 { // regardless of credits, up to the window
		c.Send(0, 100, 0)
	}
	if psn := c.Send(0, 100, 0); psn != 1016 || c.Stats().Refused != 1 || c.Next() != 1016 {
		t.Errorf("a Send beyond the window gave %d: %+v", psn, c.Stats())
	}
}

// TestWantAR: AR is set at least every quarter of a window that is half used, never in a window that is hardly used,
// and on each retransmission.
func TestWantAR(t *testing.T) {
	c := newConn(64)
	var asked []int
	for i := range 64 {
		c.Send(0, 100, 0)
		if c.WantAR(true) {
			asked = append(asked, i)
		}
		if c.WantAR(true) {
			t.Fatal("WantAR said so twice")
		}
	}
	if len(asked) != 3 || asked[0] != 31 || asked[1] != 47 || asked[2] != 63 {
		t.Errorf("asked at %v, want 31, 47, 63", asked)
	}
	ping := newConn(64)
	for i := range 1000 {
		now := reliable.Time(i) * 10 * us
		psn := ping.Send(now, 100, 0)
		if ping.WantAR(true) {
			t.Fatalf("asked for acknowledgement of %d alone in flight", psn)
		}
		if err := ping.OnAck(now+5*us, psn.Add(1), 64); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConfigClamps: Init makes a working connection from any configuration.
func TestConfigClamps(t *testing.T) {
	for _, cfg := range []reliable.Config{
		{},
		{Window: -1, RecvWindow: math.MaxInt, PeerWindow: -5, InitialCwnd: -1},
		{Window: 3, RecvWindow: 1, MinRTO: math.MaxInt64, MaxRTO: 1, DeathTimeout: 2, KeepAlive: math.MaxInt64},
		{Window: 1, RecvWindow: 5000, AckDelay: -1, TargetDelay: -1, InitialCwnd: math.MaxInt},
	} {
		var c reliable.Conn
		c.Init(cfg)
		if n := c.CanSend(0); n < 1 {
			t.Errorf("%+v: CanSend is %d", cfg, n)
		}
		c.Send(0, 1, 0)
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
		if d := c.Deadline(); d < 0 || d == reliable.Never {
			t.Errorf("%+v: deadline is %d", cfg, d)
		}
	}
}

// TestWrap slides a small window over the wrap of all numbers: PSNs in both directions and the numbers of
// transmissions.
func TestWrap(t *testing.T) {
	var c reliable.Conn
	c.Init(reliable.Config{LocalISN: math.MaxUint32 - 1000, PeerISN: math.MaxUint32 - 500, Window: 8, RecvWindow: 8})
	c.SetOrder(math.MaxUint32 - 1500)
	peer := wire.PSN(math.MaxUint32 - 500)
	for i := range 3000 {
		now := reliable.Time(i) * 100 * us
		first := c.Next()
		for range 8 {
			c.Send(now, 1, 0)
		}
		if got := c.Arrive(now, peer, false); got != reliable.Deliver {
			t.Fatalf("PSN %d: %v", peer, got)
		}
		peer = peer.Add(1)
		c.Header()
		runs := []wire.SackRun{{First: first.Add(1), End: first.Add(8)}}
		if err := c.OnSack(now+20*us, first, 8, runs); err != nil {
			t.Fatal(err)
		}
		if psn, _, ok := c.Retransmit(now + 20*us); !ok || psn != first {
			t.Fatalf("resent %d, %v, want %d", psn, ok, first)
		}
		if err := c.OnAck(now+40*us, c.Next(), 8); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Resent != 3000 || s.Timeouts+s.TailProbes > 0 {
		t.Errorf("not all losses were found by SACK: %+v", s)
	}
}
