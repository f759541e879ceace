package main

import (
	"context"

	"urdma/inspect"
	"urdma/urdmad/attach/metrics"
)

// listenMetrics opens metrics_address early, because an address that cannot be opened ends
// urdmad.
func (d *daemon) listenMetrics() (err error) {
	if d.Config.MetricsAddress == "" {
		return nil
	}
	d.metrics, err = metrics.Listen(d.Config.MetricsAddress, func(ctx context.Context) (*inspect.Snapshot, error) {
		return d.snapshots.Snapshot(ctx)
	})
	return err
}

// serveMetrics answers scrapes until closeMetrics.
func (d *daemon) serveMetrics(context.Context) {
	if d.metrics == nil {
		return
	}
	d.Background.Go(func() {
		if err := d.metrics.Serve(); err != nil {
			d.log.Warn("no more metrics", "error", err)
		}
	})
	d.log.Info("metrics are served", "address", d.metrics.Addr().String())
}

func (d *daemon) closeMetrics() error {
	if d.metrics == nil {
		return nil
	}
	return d.metrics.Close()
}
