package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"urdma/systemd"
)

// supervise keeps the service manager informed until ctx ends, and runs attached features.
func (d *daemon) supervise(ctx context.Context) {
	run := func(what string, fn func() error) {
		d.Background.Go(func() {
			if err := fn(); err != nil {
				d.log.Warn("the service manager is no longer told", "what", what, "error", err)
			}
		})
	}
	run("status", func() error { return d.reporter.Keep(ctx) })
	run("watchdog", func() error { return systemd.Watchdog(ctx, d.beats()...) })
	for _, f := range d.attached {
		if f.run != nil {
			f.run(ctx)
		}
	}
}

// beats returns the workers' heartbeats for a watchdog.
func (d *daemon) beats() (all []systemd.Beat) {
	for _, p := range d.Pollers {
		all = append(all, p.Worker.Beat)
	}
	return all
}

// tell notifies the service manager. A failure is logged, but does not end urdmad.
func (d *daemon) tell(say func() error) {
	if err := say(); err != nil {
		d.log.Warn("telling the service manager", "error", err)
	}
}

// portsShown is the number of ports named in the status line.
const portsShown = 4

// status returns the line for systemctl status: ports and links, clients, queue pairs, and the
// error of the last reload.
func (d *daemon) status() string {
	var ports []string
	for i, p := range d.Config.Ports {
		if i == portsShown {
			ports = append(ports, fmt.Sprintf("and %d more", len(d.Config.Ports)-i))
			break
		}
		link := "down"
		if d.Links.Up(i) {
			link = "up"
		}
		ports = append(ports, fmt.Sprintf("%s %s %s", p.Name, d.Server.Devices[i].At().Address, link))
	}
	text := strings.Join(ports, ", ") + "; " + count(d.Server.Clients(), "client") + ", " + d.queuePairs()
	if r := d.refusal.Load(); r != nil {
		text += "; " + *r
	}
	return text
}

// answerTime is how long a poll loop may take to answer before the status reports that it does
// not answer.
const answerTime = 500 * time.Millisecond

func (d *daemon) queuePairs() string {
	n, all := make(chan int, len(d.Pollers)), 0
	for _, p := range d.Pollers {
		p.Do(func() { n <- p.Engine.QPs.Len() })
	}
	limit := time.NewTimer(answerTime)
	defer limit.Stop()
	for range d.Pollers {
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
