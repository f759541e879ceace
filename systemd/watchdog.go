package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Beat is a counter that grows as long as one poll loop turns.
type Beat func() uint64

// feedsPerInterval: systemd kills after one interval without food, so a
// reading that comes a little early or late must not matter.
const feedsPerInterval = 4

// Watchdog feeds systemd's watchdog until ctx ends, but only while every beat
// grows: a poll loop that stands still starves it, as does a process that
// stands still as a whole. It returns at once where no watchdog was asked for.
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

// pulse compares beats with what they were when all had last grown.
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

// alive tells whether every loop has turned since alive was last true.
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
