package control

import (
	"slices"

	"golang.org/x/sys/unix"

	"urdma/urdmad/cm"
)

// cleanUp removes everything the client owned: first ids and queue pairs, so
// that peers hear of the end, then what those stood on.
func (x *Session) cleanUp() {
	x.endCapture()
	if x.client == nil {
		x.bells.close()
		return
	}
	var rings []*sharedMemory
	x.do(func() {
		x.ended = true
		x.s.attached = slices.DeleteFunc(x.s.attached, func(y *Session) bool { return y == x })
		x.removeConnections()
		rings = x.removeObjects()
		x.s.Engine.RemoveClient(x.client)
	})
	for _, r := range rings {
		r.close()
	}
	if x.kick >= 0 {
		_ = x.s.Unwatch(x.kick) // a hung-up socket has left the set already
		_ = unix.Close(x.kick)  // nothing to do about a failed close
	}
	x.bells.close()
	x.space.Close()
}

func (x *Session) removeConnections() {
	for _, v := range x.objects {
		if q, ok := v.(*qpObject); ok {
			x.s.Engine.RemoveQP(q.qp)
		}
	}
	for _, v := range x.objects {
		if id, ok := v.(*cm.ID); ok {
			x.s.CM.Destroy(id)
		}
	}
}

// removeObjects forgets the rest and returns the memory that can be unmapped
// once the engine has let go of it.
func (x *Session) removeObjects() (rings []*sharedMemory) {
	for _, v := range x.objects {
		switch o := v.(type) {
		case *qpObject:
			x.s.Devices[o.pd.ctx.dev].pairs--
			rings = append(rings, o.ring)
		case *cqObject:
			rings = append(rings, o.ring)
		case *mrObject:
			x.s.Engine.Memory().Remove(o.region)
		case *channelObject:
			o.socket.Close()
		case *contextObject:
			o.async.Close()
		case *cmChannelObject:
			o.socket.Close()
		}
	}
	x.objects = nil
	return rings
}
