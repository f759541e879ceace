package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"urdma/systemd"
)

// supervise keeps the service manager informed until ctx ends, and serves metrics,
// logs and probes of other hosts.
func (d *daemon) supervise(ctx context.Context) {
	run := func(what string, fn func() error) {
		d.background.Go(func() {
			if err := fn(); err != nil {
				d.log.Warn("the service manager is no longer told", "what", what, "error", err)
			}
		})
	}
	run("status", func() error { return d.reporter.Keep(ctx) })
	run("watchdog", func() error { return systemd.Watchdog(ctx, d.beats()...) })
	d.serveMetrics()
	d.background.Go(func() { d.responder.Run(ctx) })
	d.background.Go(func() { d.showCounters(ctx) })
	d.background.Go(func() { d.wires.run(ctx) })
	if d.cfg.StatsInterval > 0 {
		d.background.Go(func() { d.logStatistics(ctx) })
	}
}

// tell reports to the service manager; that it doesn't listen is worth a line,
// but no reason to end.
func (d *daemon) tell(say func() error) {
	if err := say(); err != nil {
		d.log.Warn("telling the service manager", "error", err)
	}
}

// portsShown is how many ports the status line names.
const portsShown = 4

// status is the line of systemctl status: ports and links, clients, queue
// pairs, and what went wrong in the last reload.
func (d *daemon) status() string {
	var ports []string
	for i, p := range d.cfg.Ports {
		if i == portsShown {
			ports = append(ports, fmt.Sprintf("and %d more", len(d.cfg.Ports)-i))
			break
		}
		link := "down"
		if d.linkUp(i) {
			link = "up"
		}
		ports = append(ports, fmt.Sprintf("%s %s %s", p.Name, d.server.Devices[i].At().Address, link))
	}
	text := strings.Join(ports, ", ") + "; " + count(d.server.Clients(), "client") + ", " + d.queuePairs()
	if r := d.refusal.Load(); r != nil {
		text += "; " + *r
	}
	return text
}

// answerTime is how long a poll loop may take to answer before the status
// says that it doesn't.
const answerTime = 500 * time.Millisecond

func (d *daemon) queuePairs() string {
	n, all := make(chan int, len(d.pollers)), 0
	for _, p := range d.pollers {
		p.do(func() { n <- p.engine.QPs.Len() })
	}
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	for range d.pollers {
		select {
		case own := <-n:
			all += own
		case <-limit.C:
			return "the poll loop does not answer"
		}
	}
	return count(all, "queue pair")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
