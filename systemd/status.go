package systemd

import (
	"context"
	"sync"
	"time"
)

// statusEvery is the interval at which Keep checks for a changed status.
const statusEvery = time.Second

// Reporter reports urdmad's status to the service manager.
type Reporter struct {
	text func() string

	mu   sync.Mutex
	told string // last status sent; "" before the first
}

// NewReporter makes a Reporter whose status line comes from text. text is not called without a service manager.
func NewReporter(text func() string) *Reporter { return &Reporter{text: text} }

// Ready reports that start-up, or a reload, is complete.
func (r *Reporter) Ready() error { return r.tell(Ready) }

// tell sends the current status by how.
func (r *Reporter) tell(how func(status string) error) error {
	if !Supervised() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = r.text()
	return how(r.told)
}

// Keep sends the status about once a second if it changed, until ctx ends.
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
