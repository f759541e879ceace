package control

import (
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// linkEventsPerTurn is the largest number of programs notified of a link change in a turn; each
// notification costs a system call.
const linkEventsPerTurn = 128

// LinkChanged sends IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR to every program that has port
// dev's device open. It may be called from any goroutine, and does not wait.
func (s *Server) LinkChanged(dev int, up bool) {
	event := uint32(abi.EventPortErr)
	if up {
		event = abi.EventPortActive
	}
	s.Workers[0].Engine.Do(func() { s.linkChanged(dev, up) })
	s.tellUsers(dev, event)
}

// SubnetChanged sends an event about a subnet manager's change to every program that has port
// dev's device open, if the device is shown as InfiniBand. It does not wait.
func (s *Server) SubnetChanged(dev int, event uint32) {
	if s.Devices[dev].Personality.Name != personality.IB {
		return
	}
	s.tellUsers(dev, event)
}

// SetPlace records port dev's new address and MTU, which the engine already has. If the address
// has changed, every program that has the device open gets IBV_EVENT_GID_CHANGE. It does not
// wait.
func (s *Server) SetPlace(dev int, p Place) {
	d := &s.Devices[dev]
	moved := p.Address.Addr() != d.At().Address.Addr()
	if d.place.Store(&p); moved {
		s.tellUsers(dev, abi.EventGIDChange)
	}
}

// tellUsers sends a port's event to the clients that have its device open.
func (s *Server) tellUsers(dev int, event uint32) {
	for _, w := range s.Workers {
		w.Engine.Do(func() {
			w.Tell(w.attached, s.First(dev), abi.AsyncEvent{EventType: event, Handle: uint32(s.Devices[dev].Number)})
		})
		w.Wake()
	}
}

// Tell sends an event to those of clients that have opened the device whose first port is dev, in
// this turn and later ones; on the worker's thread.
func (w *Worker) Tell(clients []*Session, dev int, event abi.AsyncEvent) {
	idle := !w.Telling()
	for _, x := range clients {
		for _, c := range x.Openings {
			if c.Dev == dev {
				w.linkEvents = append(w.linkEvents, linkEvent{c.Async, event})
			}
		}
	}
	if idle {
		w.tellLinks()
	}
}

// Telling reports whether events of an earlier Tell are still to be sent; on the worker's thread.
func (w *Worker) Telling() bool { return len(w.linkEvents) > 0 }

// tellLinks sends some of the events, and the others in later turns.
func (w *Worker) tellLinks() {
	n := min(len(w.linkEvents), linkEventsPerTurn)
	for i := range w.linkEvents[:n] {
		e := &w.linkEvents[i]
		w.Engine.QPs.Events.Send(e.to, abi.Bytes(&e.event))
	}
	if w.linkEvents = w.linkEvents[n:]; len(w.linkEvents) > 0 {
		w.Engine.Do(w.tellLinks)
	} else {
		w.linkEvents = nil
	}
}
