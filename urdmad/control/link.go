package control

import (
	"urdma/verbs/abi"
)

// thePort is the number of a device's only port (ibv_query_port(3)).
const thePort = 1

// LinkChanged tells every program that has device dev open that the port's link
// came up or went down: IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR. It may be
// called from any goroutine, and does not wait.
func (s *Server) LinkChanged(dev int, up bool) {
	ev := abi.AsyncEvent{EventType: abi.EventPortErr, Handle: thePort}
	if up {
		ev.EventType = abi.EventPortActive
	}
	s.Engine.Do(func() {
		for _, x := range s.attached {
			for _, v := range x.objects {
				if c, ok := v.(*contextObject); ok && c.dev == dev {
					s.Engine.QPs.Events.Send(c.async, abi.Bytes(&ev))
				}
			}
		}
	})
	s.Wake()
}
