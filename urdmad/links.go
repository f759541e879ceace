package main

import (
	"sync"
	"sync/atomic"

	"urdma/urdmad/attach/sysfs"
	"urdma/urdmad/core/mailbox"
)

// links are the ports' links as programs and users see them: down, too, for good, once
// another host has the port's address, as nothing goes that way; and as long as the
// network interface that the kernel has on the port is down, or without an address.
type links struct {
	telling  sync.Mutex // held while a change is told, so that an older state is not told last
	lost     []atomic.Bool
	cut      []atomic.Bool // on purpose: urdma inject
	away     []atomic.Bool // by the kernel's interface
	disabled []atomic.Bool // in the subnet: ibportstate, opensm
	cuts     mailbox.Box[linkCut]
}

// linkCut is a change of what urdma inject has a link be.
type linkCut struct {
	port int
	down bool
}

// linkUp reports whether packets can go by port i.
func (d *daemon) linkUp(i int) bool { return d.ports[i].Link() && !d.links.down(i) }

// down reports whether a link counts as down whatever the port says.
func (l *links) down(i int) bool { return l.broken(i) || l.disabled[i].Load() }

// broken is down, but for what the subnet knows itself.
func (l *links) broken(i int) bool { return l.lost[i].Load() || l.cut[i].Load() || l.away[i].Load() }

// cutLink is injector.Config's.
func (d *daemon) cutLink(i int, cut bool) {
	d.links.cuts.Put(linkCut{i, cut})
	d.background.Go(func() { // files are not written on the worker's thread
		d.links.telling.Lock()
		defer d.links.telling.Unlock()
		for _, c := range d.links.cuts.Take() { // in their order, whichever goroutine runs first
			if !c.down {
				d.subnet.Enable(c.port) // what ibportstate has disabled, too
			}
			d.changeLink(c.port, &d.links.cut[c.port], c.down, func(bool) {})
		}
	})
}

// changeLink changes one of the reasons for which a link is down, and tells of it what is new. It
// needs links.telling.
func (d *daemon) changeLink(i int, why *atomic.Bool, down bool, first func(down bool)) {
	link := d.ports[i].Link()
	was := link && !d.links.down(i)
	if why.Swap(down) == down {
		return
	}
	first(down)
	d.showLink(i)
	if up := link && !d.links.down(i); up != was {
		d.tellLink(i, up)
	}
}

// tellLink tells programs, and the link that it has a host: what was said of the
// port's address while it was down nobody heard. It needs links.telling.
func (d *daemon) tellLink(i int, up bool) {
	d.server.LinkChanged(i, up)
	if p := d.pollers[0]; up {
		p.do(p.engine.Interface(i).Announce)
	}
	for _, p := range d.pollers {
		p.worker.Wake() // a card that is to go waits until the worker has seen it
	}
}

// linkChanged is the port's.
func (d *daemon) linkChanged(i int, up bool) {
	d.links.telling.Lock()
	defer d.links.telling.Unlock()
	d.showLink(i)
	if !d.links.down(i) { // else it is down all the time, as addressLost or cutLink has said
		d.tellLink(i, up)
	}
}

// addressLost is engine.Config's: the port is down from now on. Files are not written
// on the worker's thread.
func (d *daemon) addressLost(i int) {
	if d.links.lost[i].Swap(true) {
		return
	}
	for _, p := range d.pollers { // one worker alone may have heard of it
		p.do(func() { p.engine.Interface(i).CutOff() })
	}
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
	if err := sysfs.SetLink(d.cfg.SysfsDir, sysfsPort(&d.cfg.Ports[i]), d.linkUp(i)); err != nil {
		d.log.Warn("sysfs does not show the link's change", "port", name, "error", err)
	}
	d.subnet.Update()
}
