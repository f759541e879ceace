package worker

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPolicyOnMachine: on an ordinary machine, busy or not, the limits stay as chosen. If
// yields and sleeps take longer, the limits grow with them, up to a bound for measurements disturbed by
// other threads.
func TestPolicyOnMachine(t *testing.T) {
	type limits struct {
		alone, yield, minSleep, crowd Time
		misses                        int
	}
	usual := limits{alone: us, yield: 200 * us, minSleep: 20 * us, crowd: 200 * us, misses: 8}
	for _, c := range []struct {
		name string
		m    Machine
		want limits
	}{
		{"nothing found", Machine{}, usual},
		{"the machine of docs/BENCHMARKS.md", Machine{Clock: 35, Yield: 305, Sleep: 3860, Wake: 1260}, usual},
		{"the machine of docs/design/scheduling.md", Machine{Yield: 420, Sleep: 15500, Wake: 5500}, usual},
		{"twice as slow", Machine{Yield: 500, Sleep: 31 * us, Wake: 26 * us}, usual},
		{"a slow clock", Machine{Clock: 900, Yield: 2200, Sleep: 16 * us, Wake: 4 * us},
			limits{6600, 200 * us, 20 * us, 200 * us, 8}},
		{"Linux 6.1", Machine{Clock: 30, Yield: 400, Sleep: 16 * us, Wake: 4 * us, KeepsCore: true},
			limits{us, 200 * us, 20 * us, 200 * us, 1}},
		{"emulated, Linux 6.1", Machine{Clock: 300, Yield: 3 * us, Sleep: 110 * us, Wake: 90 * us, KeepsCore: true},
			limits{9 * us, 1100 * us, 110 * us, 1100 * us, 1}},
		{"waking costs more than sleeping", Machine{Yield: 400, Sleep: 16 * us, Wake: 60 * us},
			limits{us, 600 * us, 60 * us, 600 * us, 8}},
		{"somebody had the core", Machine{Yield: 3 * ms, Sleep: 4 * ms}, limits{30 * us, 5 * ms, 500 * us, 5 * ms, 8}},
	} {
		p := DefaultPolicy()
		p.Yield = 200 * us // urdma.json's default
		p = p.On(c.m)
		if got := (limits{p.Alone, p.Yield, p.MinSleep, p.Crowd, p.Misses}); got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.name, got, c.want)
		}
		if err := p.validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if p := DefaultPolicy().On(Machine{Yield: 400, Sleep: 16 * us, Wake: 6 * us}); p != DefaultPolicy() {
		t.Errorf("an ordinary machine gives %+v", p)
	}
}

// TestMeasure: each of the costs is found, and the caller's thread is unchanged. The values depend on the machine; a
// yield's cost is known only if no other thread ran in it.
func TestMeasure(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	m := Measure(-1)
	t.Logf("%+v", m)
	if m.Clock <= 0 || m.Sleep <= 0 || m.Wake <= 0 || m.Yield < 0 {
		t.Errorf("%+v: a cost was not found", m)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the caller's cores were %v and are %v: %v", before, after, err)
	}
	if m := Measure(1 << 9); m.KeepsCore || m.Sleep <= 0 {
		t.Errorf("a core that isn't there: %+v", m)
	}
}

// TestLadderSleepsWhereYieldsPassOver: if yields don't run waiting threads, the worker sleeps after the
// first failed yield.
func TestLadderSleepsWhereYieldsPassOver(t *testing.T) {
	p := DefaultPolicy().On(Machine{Yield: 3 * us, Sleep: 110 * us, KeepsCore: true})
	l := newLadder(&p, 0)
	expect(t, &l, 10*us, true, 10*ms, stepTurn, 0)
	expect(t, &l, 50*us, false, 10*ms, stepYield, 0)
	l.yielded(50*us, 53*us)
	l.missed(53 * us)
	expect(t, &l, 60*us, false, 10*ms, stepSleep, 10*ms)
	expect(t, &l, 1150*us, true, 10*ms, stepTurn, 0)
	expect(t, &l, 1151*us, false, 10*ms, stepSleep, 10*ms)
	expect(t, &l, 1160*us, false, 10*ms, stepYield, 0) // to see whether it still is so
}
