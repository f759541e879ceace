package worker

import (
	"errors"
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/clock"
)

const (
	us = clock.Microsecond
	ms = clock.Millisecond
)

func testLadder(now Time) *ladder {
	p := DefaultPolicy()
	l := newLadder(&p, now)
	return &l
}

func expect(t *testing.T, l *ladder, now Time, busy bool, deadline Time, want step, wantUntil Time) {
	t.Helper()
	do, until := l.next(now, busy, deadline)
	if do != want || until != wantUntil {
		t.Errorf("at %d busy=%v deadline %d: step %d until %d, want %d until %d",
			now, busy, deadline, do, until, want, wantUntil)
	}
}

func TestLadderFromWorkToSleep(t *testing.T) {
	l := testLadder(0)
	expect(t, l, 10*us, true, clock.Never, stepTurn, 0)
	expect(t, l, 11*us, false, clock.Never, stepYield, 0)
	l.yielded(11*us, 13*us) // another thread ran
	expect(t, l, 13*us, false, clock.Never, stepYield, 0)
	l.yielded(13*us, 13*us+500) // no other thread ran
	expect(t, l, 14*us, false, clock.Never, stepTurn, 0)
	expect(t, l, 13*us+500+2*us, false, clock.Never, stepYield, 0)
	expect(t, l, 60*us, false, clock.Never, stepSleep, 60*us+100*ms)
	expect(t, l, 70*us, false, 5*ms, stepSleep, 5*ms)
	expect(t, l, 71*us, true, 5*ms, stepTurn, 0)
	expect(t, l, 72*us, false, 5*ms, stepYield, 0)
}

// TestLadderSleepsLongWhileIdle: only a deadline shortens the sleeps of a worker that has had no work for a while.
func TestLadderSleepsLongWhileIdle(t *testing.T) {
	l := testLadder(0)
	l.next(0, true, clock.Never)
	expect(t, l, 99*ms, false, clock.Never, stepSleep, 199*ms)
	expect(t, l, 100*ms, false, clock.Never, stepSleep, 600*ms)
	expect(t, l, 200*ms, false, 250*ms, stepSleep, 250*ms)
	l.next(300*ms, true, clock.Never)
	expect(t, l, 301*ms, false, clock.Never, stepSleep, 401*ms)
}

func TestLadderStaysAwakeForNearDeadline(t *testing.T) {
	l := testLadder(0)
	expect(t, l, ms, false, ms+19*us, stepYield, 0)
	expect(t, l, ms, false, ms, stepYield, 0)
	expect(t, l, ms, false, ms-us, stepYield, 0)
	expect(t, l, ms, false, ms+20*us, stepSleep, ms+20*us)
}

func TestLadderSleepsBesideHog(t *testing.T) {
	l := testLadder(0)
	now := Time(0)
	pauses := []Time{1, 2, 4, 8, 16, 32, 64, 64}
	for _, pause := range pauses {
		l.next(now, true, clock.Never)
		expect(t, l, now, false, clock.Never, stepYield, 0)
		l.yielded(now, now+4*ms)
		now += 4 * ms
		expect(t, l, now, true, clock.Never, stepTurn, 0)
		expect(t, l, now, false, clock.Never, stepSleep, now+100*ms)
		expect(t, l, now, false, now+5*us, stepSleep, now+5*us)
		expect(t, l, now+pause*ms-1, false, clock.Never, stepSleep, now+pause*ms-1+100*ms)
		now += pause * ms
	}
}

func TestLadderSleepsWhereItIsCrowded(t *testing.T) {
	l := testLadder(0)
	expect(t, l, 10*us, true, clock.Never, stepTurn, 0)
	expect(t, l, 11*us, false, clock.Never, stepYield, 0)
	for range 7 {
		l.yielded(11*us, 11*us+400)
		l.missed(11*us + 400)
		expect(t, l, 12*us, false, clock.Never, stepYield, 0) // at once, without spinning
	}
	l.yielded(12*us, 12*us+400)
	l.missed(12*us + 400)
	expect(t, l, 13*us, false, clock.Never, stepSleep, 13*us+100*ms)
	expect(t, l, 100*us, true, clock.Never, stepTurn, 0)
	expect(t, l, 101*us, false, 5*ms, stepSleep, 5*ms)
	expect(t, l, 220*us, true, clock.Never, stepTurn, 0)
	expect(t, l, 221*us, false, clock.Never, stepYield, 0) // to see whether it still is
	if l.hogPause != 1*ms {
		t.Errorf("crowding made the pause beside a hog %d ns", l.hogPause)
	}
}

// TestLadderYieldsOnWhereOneMeets: a yield that gives the core away after some that did not shows that yields do run
// another thread.
func TestLadderYieldsOnWhereOneMeets(t *testing.T) {
	l := testLadder(0)
	now := 10 * us
	expect(t, l, now, true, clock.Never, stepTurn, 0)
	for i := range 40 {
		took := Time(400)
		if i%8 == 7 {
			took = 2 * us
		}
		l.yielded(now, now+took)
		if now += took; took < us {
			l.missed(now)
		}
		expect(t, l, now, false, clock.Never, stepYield, 0)
	}
}

func TestLadderForgetsHog(t *testing.T) {
	l := testLadder(0)
	l.yielded(0, 4*ms)
	l.yielded(5*ms, 9*ms)
	if l.hogPause != 4*ms {
		t.Fatalf("after two hogs the pause is %d ns, want 4 ms", l.hogPause)
	}
	l.yielded(11*ms, 11*ms+2*us)
	if l.hogPause != 4*ms {
		t.Errorf("one good yield made the pause %d ns, want 4 ms still", l.hogPause)
	}
	l.yielded(16*ms, 16*ms+2*us)
	if l.hogPause != 1*ms {
		t.Errorf("after 5 ms of good yields the pause is %d ns, want 1 ms", l.hogPause)
	}
}

func TestNapDoublesAndWorkResetsIt(t *testing.T) {
	l := testLadder(0)
	for _, want := range []Time{20, 40, 80, 160, 320, 640, 1000, 1000} {
		if got := l.napUntil(0, clock.Never); got != want*us {
			t.Errorf("nap of %d ns, want %d µs", got, want)
		}
	}
	if got := l.napUntil(0, 3*us); got != 3*us {
		t.Errorf("nap went %d ns past a deadline 3 µs away", got)
	}
	l.next(1, true, clock.Never)
	if got := l.napUntil(0, clock.Never); got != 20*us {
		t.Errorf("nap after work is %d ns, want 20 µs", got)
	}
}

// In all cases a worker never sleeps past a deadline or the bound of sleeps, and only turns while it is busy.
func TestLadderProperties(t *testing.T) {
	const seed = 20240611
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	l := testLadder(0)
	now := Time(0)
	for range 200000 {
		now += Time(r.Int64N(int64(100 * us)))
		busy, deadline := r.IntN(3) == 0, now+Time(r.Int64N(int64(ms)))-50*us
		if r.IntN(4) == 0 {
			deadline = clock.Never
		}
		do, until := l.next(now, busy, deadline)
		switch {
		case busy && do != stepTurn:
			t.Fatalf("at %d: busy, but step %d", now, do)
		case do == stepSleep && (until > deadline || until > now+max(l.policy.MaxSleep, l.policy.IdleSleep) || until < now):
			t.Fatalf("at %d: sleep until %d with deadline %d", now, until, deadline)
		case do == stepYield:
			took := Time(r.Int64N(int64(3 * us)))
			if r.IntN(1000) == 0 {
				took = 4 * ms
			}
			l.yielded(now, now+took)
			now += took
		case do == stepSleep && r.IntN(2) == 0:
			if n := l.napUntil(now, until); n > until || n < now {
				t.Fatalf("at %d: nap until %d, bound %d", now, n, until)
			}
		}
		if l.hogTill > now+l.policy.HogPauseMost {
			t.Fatalf("at %d: hog avoided until %d", now, l.hogTill)
		}
	}
}

func TestPolicyValidation(t *testing.T) {
	good := DefaultPolicy()
	if err := good.validate(); err != nil {
		t.Fatalf("default policy: %v", err)
	}
	for name, spoil := range map[string]func(*Policy){
		"MaxSleep": func(p *Policy) { p.MaxSleep = 0 },
		"Nap":      func(p *Policy) { p.Nap = 0 },
		"NapMost":  func(p *Policy) { p.NapMost = p.Nap - 1 },
		"HogPause": func(p *Policy) { p.HogPause = 0 },
		"Yield":    func(p *Policy) { p.Yield = -1 },
		"Nice":     func(p *Policy) { p.Nice = 20 },
	} {
		p := DefaultPolicy()
		spoil(&p)
		if err := p.validate(); !errors.Is(err, ErrPolicy) {
			t.Errorf("%s spoiled: error %v, want ErrPolicy", name, err)
		}
	}
}
