package serve

import (
	"sync"
	"sync/atomic"
)

// Links are the ports' links as programs and users see them: down, too, as long as there is a
// reason why nothing goes that way.
type Links struct {
	sync.Mutex // held while a change is told, so that an older state is not told last

	core *Core
	down []atomic.Uint32 // the Reasons, by port
	show []func(dev int)
}

// Reason is a set of reasons for which a link counts as down, whatever its port says.
type Reason uint32

// AddressLost says that another host has the port's address: for good. Features that are attached
// have further reasons.
const AddressLost Reason = 1

// Up reports whether packets can go by a port.
func (l *Links) Up(dev int) bool { return l.core.Ports[dev].Link() && l.Why(dev) == 0 }

// Why is for what reasons the link counts as down.
func (l *Links) Why(dev int) Reason { return Reason(l.down[dev].Load()) }

// Watch begins to tell of links: show is called with a port whose link has changed, or might have,
// with the lock held. A link that comes up later is announced then, all others now.
func (l *Links) Watch(show ...func(dev int)) {
	l.show = show
	for i, p := range l.core.Ports {
		p.Watch(func(up bool) { l.changed(i, up) })
		l.Lock()
		l.Show(i) // it may have changed in between
		l.Unlock()
	}
	first := l.core.Pollers[0] // for all
	first.Do(first.Engine.Announce)
}

// Show has a port's link shown as it is; with the lock held.
func (l *Links) Show(dev int) {
	for _, show := range l.show {
		show(dev)
	}
}

// Set changes for what reasons a link is down, and tells of it what is new; with the lock held.
func (l *Links) Set(dev int, ended, begun Reason) {
	before := l.Why(dev)
	now := before&^ended | begun
	if now == before {
		return
	}
	link := l.core.Ports[dev].Link()
	l.down[dev].And(^uint32(ended &^ begun))
	l.down[dev].Or(uint32(begun))
	l.Show(dev)
	if up := link && now == 0; up != (link && before == 0) {
		l.tell(dev, up)
	}
}

// tell tells programs, and the link that it has a host: what was said of the
// port's address while it was down nobody heard.
func (l *Links) tell(dev int, up bool) {
	l.core.Server.LinkChanged(dev, up)
	if p := l.core.Pollers[0]; up {
		p.Do(p.Engine.Interface(dev).Announce)
	}
	for _, p := range l.core.Pollers {
		p.Worker.Wake() // a card that is to go waits until the worker has seen it
	}
}

// changed is the port's.
func (l *Links) changed(dev int, up bool) {
	l.Lock()
	defer l.Unlock()
	l.Show(dev)
	if l.Why(dev) == 0 { // else it is down all the time, as was told
		l.tell(dev, up)
	}
}

// addressLost is engine.Config's: the port is down from now on. Nothing is shown
// on the worker's thread.
func (c *Core) addressLost(dev int) {
	l := &c.Links
	if Reason(l.down[dev].Or(uint32(AddressLost)))&AddressLost != 0 {
		return
	}
	for _, p := range c.Pollers { // one worker alone may have heard of it
		p.Do(func() { p.Engine.Interface(dev).CutOff() })
	}
	c.Background.Go(func() {
		l.Lock()
		defer l.Unlock()
		l.Show(dev)
		c.Server.LinkChanged(dev, false)
	})
}
