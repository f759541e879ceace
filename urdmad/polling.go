package main

import (
	"math"
	"time"

	"urdma/inspect"
	"urdma/urdmad/core/worker"
)

// measure finds out what yields and sleeps are on this machine, once.
func (d *daemon) measure() {
	d.machine = worker.Measure(d.core(0))
	p := d.policy(0)
	d.log.Debug("polling: as measured on this machine", "clock", time.Duration(d.machine.Clock), "yield", time.Duration(d.machine.Yield),
		"sleep", time.Duration(d.machine.Sleep), "wake", time.Duration(d.machine.Wake), "keeps_core", d.machine.KeepsCore,
		"alone", time.Duration(p.Alone), "yield_for", time.Duration(p.Yield), "min_sleep", time.Duration(p.MinSleep),
		"crowd", time.Duration(p.Crowd), "misses", p.Misses)
}

// policy is what the configuration asks for a worker, and where it asks for nothing what
// suits the machine.
func (d *daemon) policy(n int) worker.Policy {
	p := worker.DefaultPolicy()
	c := d.cfg.Polling
	p.Spin, p.Yield = worker.Time(c.Spin), worker.Time(c.Yield)
	p = p.On(d.machine)
	if !d.isDefault("polling.yield_us") {
		p.Yield = worker.Time(c.Yield)
	}
	p.Slice, p.Nice = worker.Time(c.Slice), c.Nice
	p.NapMost = worker.Time(c.MaxSleep)
	if p.Nap = min(p.Nap, p.NapMost); p.NapMost == 0 { // never sleeps
		p.Nap, p.NapMost = worker.DefaultPolicy().Nap, worker.DefaultPolicy().NapMost
		p.Yield, p.Hog = math.MaxInt64, 0
	}
	p.Core = d.core(n)
	return p
}

// core is the one that a worker is bound to, negative for any.
func (d *daemon) core(n int) int {
	if len(d.cfg.Workers) == 0 {
		return worker.DefaultPolicy().Core
	}
	return d.cfg.Workers[n].Core
}

// isDefault reports whether nobody chose the setting.
func (d *daemon) isDefault(path string) bool {
	for _, s := range d.cfg.Settings {
		if s.Path == path {
			return s.Origin == "default"
		}
	}
	return true
}

// scheduling is what a snapshot says of all that.
func (d *daemon) scheduling() *inspect.Scheduling {
	m, p := &d.machine, d.policy(0)
	return &inspect.Scheduling{ClockNs: int64(m.Clock), YieldNs: int64(m.Yield), SleepNs: int64(m.Sleep), WakeNs: int64(m.Wake), KeepsCore: m.KeepsCore,
		AloneNs: int64(p.Alone), YieldForNs: int64(p.Yield), MinSleepNs: int64(p.MinSleep), CrowdNs: int64(p.Crowd), Misses: p.Misses}
}
