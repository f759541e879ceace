package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"urdma/counters"
	"urdma/dpdk/port"
	"urdma/inspect"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/steer"
	"urdma/urdmad/core/worker"
	"urdma/urdmad/sysfs"
)

func (d *daemon) attachSnapshots() error {
	d.snapshots = snapshot.Attach(d.Server, d.snapshotConfig())
	return nil
}

// about returns the snapshot's facts about this process.
func (d *daemon) about() inspect.Daemon {
	return inspect.Daemon{Version: version, PID: os.Getpid(), UID: os.Getuid(), Started: time.Now(),
		Socket: d.Config.Socket,
		Config: d.Config.Source, Scheduling: d.scheduling()}
}

// snapshotConfig returns the snapshot's facts about the daemon and its ports.
func (d *daemon) snapshotConfig() snapshot.Config {
	c := snapshot.Config{Daemon: d.about(), Loop: d.loop, Responder: d.aboutResponder,
		Parts: []snapshot.Part{d.injector.Show, d.watch.Show}}
	for i, p := range d.Config.Ports {
		info := d.Ports[i].Info()
		c.Ports = append(c.Ports, snapshot.Port{Driver: info.Driver, Interface: info.Interface,
			Vdev: cmp.Or(p.Vdev, p.PCIAddress), Rate: sysfs.Rate, Stats: d.Ports[i].Stats,
			Offloads: offloads(d.Ports[i], &d.Pollers[0].Engine.Interface(i).Batches)})
	}
	return c
}

// offloads returns a function that describes a port's kernel offloads, and for how many peers
// they are turned off.
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

// loop returns the statistics of a worker's poll loop, at most 1,024 turns old.
func (d *daemon) loop(n int) (l inspect.Loop) {
	s := d.Pollers[n].Worker.Stats()
	loopCounts.Into(&l, &s)
	if c, several := d.Steered(n); several {
		steerCounts.Into(&l, &c)
	}
	return l
}

// scheduling returns the snapshot's facts about scheduling.
func (d *daemon) scheduling() *inspect.Scheduling {
	m, p := &d.Machine, d.Policy(0)
	return &inspect.Scheduling{ClockNs: int64(m.Clock), YieldNs: int64(m.Yield), SleepNs: int64(m.Sleep),
		WakeNs: int64(m.Wake), KeepsCore: m.KeepsCore,
		AloneNs: int64(p.Alone), YieldForNs: int64(p.Yield), MinSleepNs: int64(p.MinSleep), CrowdNs: int64(p.Crowd),
		Misses: p.Misses}
}
