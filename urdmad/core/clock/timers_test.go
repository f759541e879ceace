package clock_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"urdma/urdmad/core/clock"
)

// TestOrder: timers run earliest first, at the time to which they were last set and never before, however others are
// set, moved and stopped.
func TestOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s clock.Timers
		at := make([]clock.Time, 40)
		timers := make([]*clock.Timer, len(at))
		now := clock.Time(0)
		last := clock.Time(0)
		for i := range timers {
			at[i] = clock.Never
			timers[i] = clock.NewTimer(func() {
				if at[i] > now || at[i] < last {
					t.Fatalf("seed %d: timer of %d runs at %d after one of %d", seed, at[i], now, last)
				}
				last, at[i] = at[i], clock.Never
			})
		}
		for now = range clock.Time(200) {
			for range r.IntN(4) {
				i, when := r.IntN(len(at)), now+clock.Time(r.IntN(30))
				switch r.IntN(4) {
				case 0:
					at[i] = clock.Never
					s.Set(timers[i], clock.Never)
				case 1:
					at[i] = min(at[i], when)
					s.Hasten(timers[i], when)
				default:
					at[i] = when
					s.Set(timers[i], when)
				}
			}
			if next := slices.Min(at); s.Next() != next {
				t.Fatalf("seed %d: the next timer is due at %d, expected %d", seed, s.Next(), next)
			}
			last = 0
			s.Run(now)
			if next := slices.Min(at); next <= now {
				t.Fatalf("seed %d: a timer of %d did not run at %d", seed, next, now)
			}
		}
	}
}

// TestSetAgain: a timer that sets itself to the present runs once per turn.
func TestSetAgain(t *testing.T) {
	var s clock.Timers
	var ran int
	var again *clock.Timer
	again = clock.NewTimer(func() { ran++; s.Set(again, 5) })
	s.Set(again, 5)
	for turn := range 3 {
		if n := s.Run(5); n != 1 || ran != turn+1 {
			t.Fatalf("turn %d: %d timers ran, %d in all", turn, n, ran)
		}
	}
	s.Hasten(again, clock.Never)
	if s.Next() != 5 {
		t.Errorf("hastening to Never moved the timer to %d", s.Next())
	}
	s.Set(again, clock.Never)
	if n := s.Run(clock.Never - 1); n != 0 || s.Next() != clock.Never {
		t.Errorf("a stopped timer ran")
	}
}

func TestSettingAllocatesNothing(t *testing.T) {
	var s clock.Timers
	timer := clock.NewTimer(func() {})
	s.Set(timer, 1)
	if n := testing.AllocsPerRun(100, func() { s.Set(timer, 2); s.Run(2); s.Set(timer, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRunIsBounded: if thousands of timers and functions are due together, a part runs at a time, and the clock
// reports that more are due.
func TestRunIsBounded(t *testing.T) {
	const many, most = 1000, 600
	var s clock.Timers
	ran := 0
	for range many {
		s.Set(clock.NewTimer(func() { ran++ }), 5)
		s.Soon(func() { ran++ })
	}
	for before := 0; ran < 2*many; before = ran {
		if s.Next() > 5 {
			t.Fatalf("the next is due at %d when %d of %d ran", s.Next(), ran, 2*many)
		}
		if n := s.Run(5); n > most || n == 0 || ran-before != n {
			t.Fatalf("%d ran, %d by its word", ran-before, n)
		}
	}
}
