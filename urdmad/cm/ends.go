package cm

import (
	"syscall"

	"urdma/urdmad/engine"
	"urdma/verbs/abi"
)

// Established is engine.Handler's: the peer acknowledged our accept.
func (m *Manager) Established(c *engine.Conn) {
	id, _ := c.Owner.(*ID)
	if id == nil || id.state != accepting {
		return
	}
	m.e.SetTimer(id.timer, engine.Never)
	id.state = connected
	m.Stats.Established++
	m.event(id, abi.CMEstablished, 0, func(ev *abi.CMEvent) {
		ev.Param.ResponderResources, ev.Param.InitiatorDepth = clamp8(c.IRD), clamp8(c.ORD)
		ev.Param.QPNum = uint32(id.offered.ext.QPN)
	})
}

// Closed is engine.Handler's: a connection is over.
func (m *Manager) Closed(c *engine.Conn, why engine.CloseReason) {
	id, _ := c.Owner.(*ID)
	if id == nil {
		return
	}
	m.e.SetTimer(id.timer, engine.Never)
	was := id.state
	id.state = ended
	m.forget(id)
	m.Stats.Ended++
	var status int32
	if why == engine.CloseDead {
		status = -int32(syscall.ETIMEDOUT)
	}
	switch was {
	case connected:
		m.event(id, abi.CMDisconnected, status, nil)
	case accepting:
		if why == engine.CloseDead {
			m.event(id, abi.CMUnreachable, status, nil)
			return
		}
		m.event(id, abi.CMConnectError, -int32(syscall.ECONNRESET), nil)
	}
}

// Disconnect ends an id's connection in good order; DISCONNECTED follows. On a
// request that was not answered it is a reject.
func (m *Manager) Disconnect(id *ID) error {
	switch id.state {
	case connected, accepting:
		m.soon(func() {
			if id.conn != nil {
				id.conn.Disconnect()
			}
		})
		return nil
	case requested:
		m.refuse(id, nil)
		return nil
	case ended:
		return nil
	}
	return einval
}
