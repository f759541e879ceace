package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Beat returns a counter that grows as long as one poll loop runs.
type Beat func() uint64

// feedsPerInterval: systemd kills the service after one interval without food, so a check that comes a little early
// or late must not matter.
const feedsPerInterval = 4

// Watchdog feeds systemd's watchdog until ctx ends, but only while every beat grows. If one poll loop or the whole
// process stands still, systemd restarts the service. It returns at once if no watchdog is configured.
func Watchdog(ctx context.Context, beats ...Beat) error {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("systemd: watchdog: %w", err)
	}
	if interval == 0 {
		return nil
	}
	p := newPulse(beats)
	tick := time.NewTicker(interval / feedsPerInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !p.alive() {
			continue
		}
		if err := notify(daemon.SdNotifyWatchdog); err != nil {
			return err
		}
	}
}

// pulse keeps the values of the beats at the last time that all had grown.
type pulse struct {
	beats []Beat
	last  []uint64
}

func newPulse(beats []Beat) *pulse {
	p := &pulse{beats: beats, last: make([]uint64, len(beats))}
	p.read(p.last)
	return p
}

func (p *pulse) read(into []uint64) {
	for i, beat := range p.beats {
		into[i] = beat()
	}
}

// alive reports whether every loop has run since alive last returned true.
func (p *pulse) alive() bool {
	now := make([]uint64, len(p.beats))
	p.read(now)
	for i := range now {
		if now[i] == p.last[i] {
			return false
		}
	}
	p.last = now
	return true
}
