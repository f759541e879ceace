package main

import (
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/worker"
)

// TestSchedulingIsShown: a snapshot has the measurements and the settings derived from them.
func TestSchedulingIsShown(t *testing.T) {
	src := written(t, t.TempDir(), ``)
	cfg, _, err := src.load()
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(src, cfg)
	defer d.log.close()
	d.Machine = worker.Machine{Yield: 3 * clock.Microsecond, Sleep: 100 * clock.Microsecond}
	if s := d.scheduling(); s.YieldForNs != int64(d.Policy(0).Yield) || s.SleepNs != int64(d.Machine.Sleep) {
		t.Errorf("shown are %+v", s)
	}
}
