package serve

import (
	"sync"
	"sync/atomic"
)

// Links has the state of the ports' links as programs and users see it. A link also counts as
// down while there is a Reason for it.
type Links struct {
	sync.Mutex // held while a change is reported, so that the newest state is reported last

	core *Core
	down []atomic.Uint32 // Reasons, by port
	show []func(dev int)

	watched bool // Watch was called, and there is a control server; guarded by the lock
}

// Reason is a set of reasons why a link counts as down, whatever its port reports.
type Reason uint32

// AddressLost means that another host uses the port's address; it never ends. Attached features
// have further reasons.
const AddressLost Reason = 1

// Up reports whether a port can pass packets.
func (l *Links) Up(dev int) bool { return l.core.Ports[dev].Link() && l.Why(dev) == 0 }

// Why returns the reasons why the link counts as down.
func (l *Links) Why(dev int) Reason { return Reason(l.down[dev].Load()) }

// Watch starts reporting link changes: show is called, with the lock held, with a port whose link
// has changed or might have changed. A link that is up is announced now, others when they come
// up.
func (l *Links) Watch(show ...func(dev int)) {
	l.Lock()
	l.show, l.watched = show, true
	l.Unlock()
	for i, p := range l.core.Ports {
		p.Watch(func(up bool) { l.changed(i, up) })
		l.Lock()
		l.Show(i) // the link may have changed in between
		l.Unlock()
	}
	first := l.core.Pollers[0] // one worker handles all ports
	first.Do(first.Engine.Announce)
}

// Show reports a port's present link state; the lock must be held.
func (l *Links) Show(dev int) {
	for _, show := range l.show {
		show(dev)
	}
}

// Set changes the reasons why a link is down, and reports a change of state; the lock must be
// held.
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

// tell notifies programs, and announces the port's address on the link, because nobody could hear
// announcements while it was down.
func (l *Links) tell(dev int, up bool) {
	l.core.Server.LinkChanged(dev, up)
	if p := l.core.Pollers[0]; up {
		p.Do(p.Engine.Interface(dev).Announce)
	}
	for _, p := range l.core.Pollers {
		p.Worker.Wake() // the removal of a card waits until the worker has noticed it
	}
}

// changed handles a link change of the port.
func (l *Links) changed(dev int, up bool) {
	l.Lock()
	defer l.Unlock()
	l.Show(dev)
	if l.Why(dev) == 0 { // else it was and stays down for that reason
		l.tell(dev, up)
	}
}

// addressLost implements engine.Config: the port is down from now on. Nothing is reported on the
// worker's thread.
func (c *Core) addressLost(dev int) {
	l := &c.Links
	if Reason(l.down[dev].Or(uint32(AddressLost)))&AddressLost != 0 {
		return
	}
	for _, p := range c.Pollers { // the other workers may not know it
		p.Do(func() { p.Engine.Interface(dev).CutOff() })
	}
	c.Background.Go(func() {
		l.Lock()
		defer l.Unlock()
		if !l.watched { // there are no clients yet, and Watch shows the link
			return
		}
		l.Show(dev)
		c.Server.LinkChanged(dev, false)
	})
}
