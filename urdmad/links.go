package main

import (
	"sync"
	"sync/atomic"

	"urdma/urdmad/sysfs"
)

// links are the ports' links as programs and users see them: down, too, for good, once
// another host has the port's address, as nothing goes that way.
type links struct {
	telling sync.Mutex // held while a change is told, so that an older state is not told last
	lost    []atomic.Bool
}

// linkUp reports whether packets can go by port i.
func (d *daemon) linkUp(i int) bool { return d.ports[i].Link() && !d.links.lost[i].Load() }

// linkChanged tells programs, and the link that it has a host: what was said of the
// port's address while it was down nobody heard.
func (d *daemon) linkChanged(i int, up bool) {
	d.links.telling.Lock()
	defer d.links.telling.Unlock()
	d.showLink(i)
	if d.links.lost[i].Load() {
		return // down all the time, as addressLost says
	}
	d.server.LinkChanged(i, up)
	if up {
		d.engine.Do(d.engine.Interface(i).Announce)
	}
	d.worker.Wake() // a card that is to go waits until the worker has seen it
}

// addressLost is engine.Config's: the port is down from now on. Files are not written
// on the worker's thread.
func (d *daemon) addressLost(i int) {
	d.links.lost[i].Store(true)
	d.background.Go(func() {
		d.links.telling.Lock()
		defer d.links.telling.Unlock()
		d.showLink(i)
		d.server.LinkChanged(i, false)
	})
}

// showLink writes what a link is now; it needs links.telling.
func (d *daemon) showLink(i int) {
	name := d.cfg.Ports[i].Name
	if err := sysfs.SetLink(d.cfg.SysfsDir, name, d.linkUp(i)); err != nil {
		d.log.Warn("sysfs does not show the link's change", "port", name, "error", err)
	}
}
