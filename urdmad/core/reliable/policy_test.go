package reliable_test

import (
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// pause is longer than the time within which an answer counts as quick.
const pause = 2 * reliable.DefaultAckDelay

// receiver is a receiving Conn, and its clock.
type receiver struct {
	*reliable.Conn
	t   *testing.T
	now reliable.Time
	psn wire.PSN // next in order
}

func newReceiver(t *testing.T) *receiver {
	return &receiver{Conn: newConn(128), t: t, psn: 5000}
}

// take receives n segments in order.
func (r *receiver) take(n int) {
	for range n {
		if r.Arrive(r.now, r.psn, false) != reliable.Deliver {
			r.t.Fatalf("PSN %d not delivered", r.psn)
		}
		r.psn = r.psn.Add(1)
	}
}

// want requires that an acknowledgement of the kind is due now, and sends it.
func (r *receiver) want(kind reliable.AckKind) {
	r.t.Helper()
	if got := r.AckDue(r.now); got != kind {
		r.t.Fatalf("at %d µs %v is due, want %v", r.now/us, got, kind)
	}
	if kind != reliable.AckNone {
		r.Header()
	}
	if kind == reliable.AckSack {
		r.SackRuns(nil)
	}
}

// answer sends a segment, which carries the acknowledgement.
func (r *receiver) answer() {
	r.Send(r.now, 100, 0)
	r.Header()
	if err := r.OnAck(r.now, r.Next(), 128); err != nil {
		r.t.Fatal(err)
	}
}

// exchange receives a message and answers it 10 µs later.
func (r *receiver) exchange() {
	r.take(1)
	if r.AckDue(r.now) != reliable.AckNone {
		r.Header()
	}
	r.now += 10 * us
	r.answer()
	r.now += pause
}

func (r *receiver) wantQuick(want bool) {
	r.t.Helper()
	if got := r.Stats().Quick; got != want {
		r.t.Fatalf("quick is %v, want %v", got, want)
	}
}

func newDelayed(t *testing.T) *receiver {
	r := newReceiver(t)
	for range 4 {
		r.wantQuick(true)
		r.exchange()
	}
	r.wantQuick(false)
	return r
}

func TestRidesMustBeInARow(t *testing.T) {
	r := newReceiver(t)
	for range 3 {
		r.exchange()
	}
	r.take(1) // and no answer
	r.want(reliable.AckPlain)
	r.now += pause
	r.exchange()
	r.wantQuick(true)
	for range 3 {
		r.exchange()
	}
	r.wantQuick(false)
}

func TestLateAnswersAreNoRides(t *testing.T) {
	r := newReceiver(t)
	for range 10 {
		r.take(1)
		r.want(reliable.AckPlain)
		r.now += reliable.DefaultAckDelay + 1
		r.answer()
		r.now += pause
	}
	r.wantQuick(true)
}

func TestExpiriesMustBeInARow(t *testing.T) {
	r := newDelayed(t)
	for range 5 {
		r.take(1)
		r.want(reliable.AckNone)
		r.now = r.Deadline()
		r.want(reliable.AckPlain)
		r.now += pause
		r.exchange() // carries the acknowledgement
		r.wantQuick(false)
	}
	r.take(1)
	r.now = r.Deadline()
	for range 5 { // requested repeatedly before it is sent: it expires once
		if r.AckDue(r.now) != reliable.AckPlain {
			t.Fatal("no acknowledgement due")
		}
	}
	r.wantQuick(false)
	r.Header()
	r.take(1)
	r.now = r.Deadline()
	r.want(reliable.AckPlain)
	r.wantQuick(true)
}

func TestDelay(t *testing.T) {
	r := newDelayed(t)
	began := r.now
	r.take(1)
	if d := r.Deadline(); d != began+reliable.DefaultAckDelay {
		t.Errorf("deadline is %d µs after arrival", (d-began)/us)
	}
	r.now += reliable.DefaultAckDelay - 1
	r.take(1)
	r.want(reliable.AckNone)
	r.now++ // counted from the first
	r.want(reliable.AckPlain)
	if d := r.Deadline(); d != reliable.Never {
		t.Errorf("deadline is %d with nothing owed", d)
	}
}

// TestAtOnce lists the events that are acknowledged without delay.
func TestAtOnce(t *testing.T) {
	tests := []struct {
		name string
		do   func(r *receiver)
		want reliable.AckKind
	}{
		{"one in order", func(r *receiver) { r.take(1) }, reliable.AckNone},
		{"fifteen", func(r *receiver) { r.take(15) }, reliable.AckNone},
		{"sixteen", func(r *receiver) { r.take(16) }, reliable.AckPlain},
		{"AR", func(r *receiver) { r.Arrive(r.now, r.psn, true) }, reliable.AckPlain},
		{"probe", func(r *receiver) { r.OnAckRequested(r.now) }, reliable.AckPlain},
		{"duplicate", func(r *receiver) { r.Arrive(r.now, r.psn-1, false) }, reliable.AckPlain},
		{"hole", func(r *receiver) { r.Arrive(r.now, r.psn+1, false) }, reliable.AckSack},
		{"duplicate of one held", func(r *receiver) {
			r.Arrive(r.now, r.psn+1, false)
			r.want(reliable.AckSack)
			r.Arrive(r.now, r.psn+1, false)
		}, reliable.AckSack},
		{"part of a hole filled", func(r *receiver) {
			r.Arrive(r.now, r.psn+3, false)
			r.want(reliable.AckSack)
			r.take(1)
		}, reliable.AckSack},
		{"hole filled", func(r *receiver) {
			r.Arrive(r.now, r.psn+1, false)
			r.want(reliable.AckSack)
			r.take(1)
			r.NextHeld()
		}, reliable.AckPlain},
		{"far behind a hole", func(r *receiver) {
			for n := wire.PSN(1); n <= 6; n++ {
				r.Arrive(r.now, r.psn+n, false)
			}
			r.want(reliable.AckSack)
			r.Arrive(r.now, r.psn+7, false)
		}, reliable.AckNone},
		{"window opened from closed", func(r *receiver) {
			r.SetCredits(0)
			r.answer()
			r.SetCredits(1)
		}, reliable.AckPlain},
		{"window opened by half", func(r *receiver) {
			r.SetCredits(10)
			r.answer()
			r.SetCredits(80)
		}, reliable.AckPlain},
		{"window opened a little", func(r *receiver) {
			r.SetCredits(10)
			r.answer()
			r.SetCredits(20)
		}, reliable.AckNone},
		{"outside, near", func(r *receiver) { r.Arrive(r.now, r.psn+200, false) }, reliable.AckPlain},
		{"outside, far", func(r *receiver) { r.Arrive(r.now, r.psn+1<<20, false) }, reliable.AckNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newDelayed(t)
			tt.do(r)
			r.want(tt.want)
		})
	}
}

// TestSmallWindow: a small window is acknowledged more often.
func TestSmallWindow(t *testing.T) {
	r := newDelayed(t)
	r.SetCredits(8)
	r.take(1)
	r.want(reliable.AckNone)
	r.take(1)
	r.want(reliable.AckPlain)
}

// TestBulk: in a fast one-way stream quick waits for a pause.
func TestBulk(t *testing.T) {
	r := newReceiver(t)
	acks := 0
	for range 640 {
		r.now += 300 // ns
		r.take(1)
		if r.AckDue(r.now) != reliable.AckNone {
			r.Header()
			acks++
		}
	}
	if acks < 40 || acks > 40+32 {
		t.Errorf("%d acknowledgements of 640 segments", acks)
	}
	r.take(1)
	r.want(reliable.AckNone)
	r.now = r.Deadline()
	r.want(reliable.AckPlain)
	r.now += pause + 1 // a single one later: at once
	r.take(1)
	r.want(reliable.AckPlain)
}

// TestSparse: if packets leave in batches, a fast one-way stream is acknowledged less often; a single
// segment, or one that asks for it, is acknowledged without delay.
func TestSparse(t *testing.T) {
	r := &receiver{Conn: new(reliable.Conn), t: t, psn: 5000}
	r.Init(reliable.Config{PeerISN: 5000, Window: 1024, RecvWindow: 1024, PeerWindow: 1024, Batches: true})
	r.take(16) // no stream yet
	r.want(reliable.AckPlain)
	r.take(31)
	r.want(reliable.AckNone)
	r.take(96)
	r.want(reliable.AckNone)
	r.take(1)
	r.want(reliable.AckPlain)
	r.take(15) // fewer than cause an immediate acknowledgement elsewhere: a short pause
	if d := r.Deadline() - r.now; d > 2*us {
		t.Errorf("15 segments wait %d µs", d/us)
	}
	r.take(1) // after so many the sender sets AR if it waits
	r.now += 20 * us
	r.want(reliable.AckNone)
	r.take(1)
	if d := r.Deadline() - r.now; d != 50*us {
		t.Errorf("a stream may pause for %d µs", d/us)
	}
	r.Arrive(r.now, r.psn, true)
	r.want(reliable.AckPlain)
}

// TestEnds: the last segment for now requests an acknowledgement if the peer may wait for more, and only then.
func TestEnds(t *testing.T) {
	for _, batches := range []bool{false, true} {
		c := new(reliable.Conn)
		c.Init(reliable.Config{LocalISN: 1000, Window: 1024, RecvWindow: 1024, PeerWindow: 1024, Batches: batches})
		for n := range 20 {
			c.Send(0, 100, 0)
			if got, want := c.WantAR(false), batches && n >= 15; got != want {
				t.Errorf("batches %v, %d segments: %v, want %v", batches, n+1, got, want)
			}
		}
	}
}

// TestSackSurvivesRide: a data packet carries the cumulative acknowledgement, but not the runs, which stay due.
func TestSackSurvivesRide(t *testing.T) {
	r := newDelayed(t)
	r.Arrive(r.now, r.psn+1, false)
	r.answer()
	r.want(reliable.AckSack)
	r.want(reliable.AckNone)
}
