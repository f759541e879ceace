package main

import (
	"math"
	"testing"

	"urdma/urdmad/clock"
	"urdma/urdmad/worker"
)

// TestPolicyOnSlowMachine: a default follows what was measured; what the
// configuration says, the default's own value too, stands.
func TestPolicyOnSlowMachine(t *testing.T) {
	slow := worker.Machine{Yield: 3 * clock.Microsecond, Sleep: 100 * clock.Microsecond}
	for _, c := range []struct {
		setting string
		machine worker.Machine
		yield   worker.Time
	}{
		{``, worker.Machine{}, 200 * clock.Microsecond},
		{``, slow, clock.Millisecond},
		{`,"polling":{"spin_us":7}`, slow, clock.Millisecond},
		{`,"polling":{"yield_us":200}`, slow, 200 * clock.Microsecond},
		{`,"polling":{"yield_us":0}`, slow, 0},
		{`,"polling":{"max_sleep_us":0}`, slow, math.MaxInt64},
	} {
		cfg, _, err := written(t, t.TempDir(), c.setting).load()
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{cfg: cfg, machine: c.machine}
		if got := d.policy(0).Yield; got != c.yield {
			t.Errorf("%s on %+v: yields for %d ns, expected %d", c.setting, c.machine, got, c.yield)
		}
		if s := d.scheduling(); s.YieldForNs != int64(c.yield) || s.SleepNs != int64(c.machine.Sleep) {
			t.Errorf("%s: shown are %+v", c.setting, s)
		}
	}
}
