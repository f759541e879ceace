package serve

import (
	"math"
	"time"

	"urdma/urdmad/core/worker"
)

// measure measures the cost of yields and sleeps on this machine, once.
func (c *Core) measure() {
	c.Machine = worker.Measure(c.core(0))
	p := c.Policy(0)
	c.Log.Debug("polling: as measured on this machine", "clock", time.Duration(c.Machine.Clock), "yield",
		time.Duration(c.Machine.Yield),
		"sleep", time.Duration(c.Machine.Sleep), "wake", time.Duration(c.Machine.Wake), "keeps_core", c.Machine.KeepsCore,
		"alone", time.Duration(p.Alone), "yield_for", time.Duration(p.Yield), "min_sleep", time.Duration(p.MinSleep),
		"crowd", time.Duration(p.Crowd), "misses", p.Misses)
}

// Policy returns the configured polling settings of a worker, with defaults that suit the
// machine.
func (c *Core) Policy(n int) worker.Policy {
	p := worker.DefaultPolicy()
	set := c.Config.Polling
	p.Spin, p.Yield = worker.Time(set.Spin), worker.Time(set.Yield)
	p = p.On(c.Machine)
	if !c.isDefault("polling.yield_us") {
		p.Yield = worker.Time(set.Yield)
	}
	p.Nice = set.Nice
	p.NapMost = worker.Time(set.MaxSleep)
	if p.Nap = min(p.Nap, p.NapMost); p.NapMost == 0 { // the worker never sleeps
		p.Nap, p.NapMost = worker.DefaultPolicy().Nap, worker.DefaultPolicy().NapMost
		p.Yield, p.Hog = math.MaxInt64, 0
	}
	p.Core = c.core(n)
	return p
}

// core returns the CPU to which a worker is bound; negative: any.
func (c *Core) core(n int) int {
	if len(c.Config.Workers) == 0 {
		return worker.DefaultPolicy().Core
	}
	return c.Config.Workers[n].Core
}

// isDefault reports whether a setting is not in the configuration.
func (c *Core) isDefault(path string) bool {
	for _, s := range c.Config.Settings {
		if s.Path == path {
			return s.Origin == "default"
		}
	}
	return true
}
