package control

import (
	"slices"

	"urdma/urdmad/cm"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/datagram"
)

// cleanUp removes everything the client owned: first ids and queue pairs, so
// that peers hear of the end, then what those stood on.
func (x *Session) cleanUp() {
	x.endCapture()
	if x.greeted {
		defer x.Give(&clientAmounts)
	}
	defer x.disconnect()
	if x.client == nil {
		return
	}
	datagram.SendLast(x.do, x.client.Unsent)
	var rings []*memfd.Shared
	x.turn(func() {
		x.ended = true
		x.s.attached = slices.DeleteFunc(x.s.attached, func(y *Session) bool { return y == x })
		x.removeConnections()
		rings = x.removeObjects()
		x.s.Engine.RemoveClient(x.client)
	})
	for _, r := range rings {
		r.Close()
	}
}

func (x *Session) removeConnections() {
	for _, v := range x.objects {
		if q, ok := v.(*qpObject); ok {
			x.s.Engine.Datagrams.Forget(q.qp)
			x.removeQP(q)
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
func (x *Session) removeObjects() (rings []*memfd.Shared) {
	for _, v := range x.objects {
		switch o := v.(type) {
		case *qpObject:
			x.s.Devices[o.ctx.dev].pairs.Count(x.Owner.UID, -1)
			if o.ring != nil {
				rings = append(rings, o.ring)
			}
		case *xrcdObject:
			x.s.leaveXRC(o.domain)
			x.closeXRC(o.file)
		case *srqObject:
			x.removeQueue(o)
			rings = append(rings, o.ring)
		case *cqObject:
			rings = append(rings, o.ring)
		case *mrObject:
			x.s.Engine.QPs.Regions.Remove(o.region)
		case *mwObject:
			x.s.Engine.QPs.Regions.RemoveWindow(o.window)
		case *channelObject:
			o.socket.Close()
		case *contextObject:
			o.async.Close()
		case *cmChannelObject:
			o.socket.Close()
		}
	}
	for _, bill := range x.bills {
		x.Give(bill)
	}
	x.objects, x.bills = nil, nil
	return rings
}
