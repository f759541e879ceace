package main

import (
	"context"
	"os"
	"time"

	"urdma/config"
	"urdma/counters"
	"urdma/inspect"
	"urdma/urdmad/attach/metrics"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
	"urdma/verbs/probe"
)

// about is what a snapshot says of this process.
func (d *daemon) about() inspect.Daemon {
	return inspect.Daemon{Version: version, PID: os.Getpid(), UID: os.Getuid(), Started: time.Now(), Socket: d.cfg.Socket,
		Config: d.cfg.Source, Scheduling: d.scheduling()}
}

var (
	loopCounts  = counters.NewCopy[worker.Stats, inspect.Loop]()
	steerCounts = counters.NewCopy[steer.Counts, inspect.Loop]()
)

// aboutResponder is what a snapshot says of the responder.
func (d *daemon) aboutResponder() *inspect.Responder {
	p, n := d.responder.Policy(), d.responder.Counts()
	r := &inspect.Responder{Serves: config.ResponderOff, Allow: []string{}, Port: probe.Port, Open: n.Open, Served: n.Served, Refused: n.Refused}
	if p.Serve {
		r.Serves = config.ResponderPing
	}
	for _, a := range p.Allow {
		r.Allow = append(r.Allow, a.String())
	}
	return r
}

// listenMetrics opens metrics_address early: one that can't be had ends urdmad.
func (d *daemon) listenMetrics() (err error) {
	if d.cfg.MetricsAddress == "" {
		return nil
	}
	d.metrics, err = metrics.Listen(d.cfg.MetricsAddress, func(ctx context.Context) (*inspect.Snapshot, error) {
		return d.server.Snapshot(ctx)
	})
	return err
}

// serveMetrics answers scrapes until stop closes d.metrics.
func (d *daemon) serveMetrics() {
	if d.metrics == nil {
		return
	}
	d.background.Go(func() {
		if err := d.metrics.Serve(); err != nil {
			d.log.Warn("no more metrics", "error", err)
		}
	})
	d.log.Info("metrics are served", "address", d.metrics.Addr().String())
}
