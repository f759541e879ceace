package mpa_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
)

// TestTraffic is random traffic between two engines over the kernel's TCP on lo.
func TestTraffic(t *testing.T) {
	cases := []struct {
		name string
		opt  enginetest.Options
		load enginetest.Load
	}{
		{"mapped", enginetest.Options{}, enginetest.Load{Ops: 200, MaxSize: 100000}},
		{"long", enginetest.Options{}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}},
		{"fallback", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 200000, Fallback: true}},
		{"direct", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 200000, Direct: true}},
		{"mixed memory", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 200000, Mixed: true}},
		{"one read", enginetest.Options{MaxReads: 1}, enginetest.Load{Ops: 60, MaxSize: 100000}},
		{"not ready", enginetest.Options{RNRRetry: 7}, enginetest.Load{Ops: 100, MaxSize: 100000, NotReady: true}},
		{"not ready fallback", enginetest.Options{RNRRetry: 7},
			enginetest.Load{Ops: 60, MaxSize: 100000, NotReady: true, Fallback: true}},
		{"not ready direct", enginetest.Options{RNRRetry: 7},
			enginetest.Load{Ops: 60, MaxSize: 100000, NotReady: true, Direct: true}},
	}
	for i, c := range cases {
		for seed := uint64(1); seed <= seeds(3); seed++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				opt := c.opt
				opt.Seed = uint64(i)<<32 | seed // port numbers depend on it
				w := world(t, opt)
				a, b := w.Pair(false, nil)
				w.NewTraffic(a, b, c.load).Run(120 * time.Second)
			})
		}
	}
}

// TestEarlyEnds: receivers that are slow, or disconnect as soon as they have everything, and senders that
// disconnect as soon as they have posted.
func TestEarlyEnds(t *testing.T) {
	ways := map[string]struct {
		load enginetest.Load
		run  func(*enginetest.Traffic)
	}{
		"receiver lags": {enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Lag: 30 * time.Millisecond},
			func(f *enginetest.Traffic) { f.Run(60 * time.Second) }},
		"receiver leaves": {enginetest.Load{Ops: 60, MaxSize: 400000},
			func(f *enginetest.Traffic) { f.ReceiverLeaves(60 * time.Second) }},
		"sender ends": {enginetest.Load{Ops: 60, MaxSize: 400000},
			func(f *enginetest.Traffic) { f.SenderEnds(60 * time.Second) }},
	}
	for name, way := range ways {
		for seed := uint64(1); seed <= seeds(4); seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				w := world(t, enginetest.Options{Seed: uint64(len(name))<<40 | seed})
				a, b := w.Pair(false, nil)
				way.run(w.NewTraffic(a, b, way.load))
			})
		}
	}
}

// seeds returns the number of seeds for a randomized test.
func seeds(short int) uint64 {
	if os.Getenv("URDMA_LONG") != "" {
		return uint64(short) * 20
	}
	return uint64(short)
}

// TestUnready: a message that arrives before any receive was posted is recorded.
func TestUnready(t *testing.T) {
	w := world(t, enginetest.Options{RNRRetry: 7, Seed: 1<<40 | 1})
	a, b := w.Pair(false, nil)
	m := a.Client.Register(64, enginetest.ReadWrite)
	a.Post(enginetest.Send(1), m.SGE(0, 64))
	for range 10000 {
		if w.Pass(time.Millisecond); b.Q.Unready() {
			break
		}
	}
	if !b.Q.Unready() || a.Q.Unready() {
		t.Errorf("receiver %t, sender %t", b.Q.Unready(), a.Q.Unready())
	}
}
