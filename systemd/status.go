package systemd

import (
	"context"
	"sync"
	"time"
)

// statusEvery is how often Keep looks whether the status changed.
const statusEvery = time.Second

// Reporter tells the service manager how we are.
type Reporter struct {
	text func() string

	mu   sync.Mutex
	told string // "" before the first time
}

// NewReporter makes a Reporter whose status line text writes. It is not called
// where no service manager listens.
func NewReporter(text func() string) *Reporter { return &Reporter{text: text} }

// Ready says that start-up, or a reload, is complete.
func (r *Reporter) Ready() error { return r.tell(Ready) }

// tell passes the present status to how.
func (r *Reporter) tell(how func(status string) error) error {
	if !Supervised() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = r.text()
	return how(r.told)
}

// Keep refreshes the status about once a second, where it changed, until ctx
// ends.
func (r *Reporter) Keep(ctx context.Context) error { return r.keep(ctx, statusEvery) }

func (r *Reporter) keep(ctx context.Context, every time.Duration) error {
	if !Supervised() {
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.refresh(); err != nil {
			return err
		}
	}
}

func (r *Reporter) refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.text()
	if now == r.told {
		return nil
	}
	r.told = now
	return Status(now)
}
