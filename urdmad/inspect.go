package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"urdma/config"
	"urdma/counters"
	"urdma/dpdk/port"
	"urdma/inspect"
	"urdma/urdmad/attach/metrics"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/attach/sysfs"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
	"urdma/verbs/probe"
)

// about is what a snapshot says of this process.
func (d *daemon) about() inspect.Daemon {
	return inspect.Daemon{Version: version, PID: os.Getpid(), UID: os.Getuid(), Started: time.Now(), Socket: d.cfg.Socket,
		Config: d.cfg.Source, Scheduling: d.scheduling()}
}

// snapshotConfig is what a snapshot says of the daemon and its ports.
func (d *daemon) snapshotConfig() snapshot.Config {
	c := snapshot.Config{Daemon: d.about(), Loop: d.loop, Responder: d.aboutResponder, Parts: []snapshot.Part{d.injector.Show, snapshot.Warnings}}
	for i, p := range d.cfg.Ports {
		info := d.ports[i].Info()
		c.Ports = append(c.Ports, snapshot.Port{Driver: info.Driver, Interface: info.Interface, Vdev: cmp.Or(p.Vdev, p.PCIAddress),
			Rate: sysfs.Rate, Offloads: offloads(d.ports[i], &d.pollers[0].engine.Interface(i).Batches), Stats: d.ports[i].Stats})
	}
	return c
}

// offloads says what a port has of the kernel's offloads, and to how many peers
// they are of no use.
func offloads(p port.Port, b *netif.Batches) func() string {
	o, ok := p.(port.Offloader)
	if !ok {
		return nil
	}
	return func() string {
		text := o.Offloads()
		if n := b.Alone(worker.Now()); n > 0 {
			text += fmt.Sprintf(", to %d peers that lose all but the first of what leaves together one segment at a time", n)
		}
		return text
	}
}

var (
	loopCounts  = counters.NewCopy[worker.Stats, inspect.Loop]()
	steerCounts = counters.NewCopy[steer.Counts, inspect.Loop]()
)

// loop is what a worker has done, at most 1,024 turns ago.
func (d *daemon) loop(n int) (l inspect.Loop) {
	s := d.pollers[n].worker.Stats()
	loopCounts.Into(&l, &s)
	if d.shared != nil {
		c := d.shared.hub.Counts(n)
		steerCounts.Into(&l, &c)
	}
	return l
}

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
		return d.snapshots.Snapshot(ctx)
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
