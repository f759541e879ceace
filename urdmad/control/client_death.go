package control

import (
	"slices"

	"urdma/urdmad/control/memfd"
)

// removedPerTurn bounds the objects of a client that has gone which a turn removes, and
// removedWork what that takes, as qp.Table.Spent counts it.
const (
	removedPerTurn = 64
	removedWork    = 2 << 20
)

// cleanUp removes everything the client owned, a part of it in each turn.
func (x *Session) cleanUp() {
	x.endCapture()
	if x.greeted {
		defer x.Give(&clientAmounts)
		defer x.w.clients.Add(-1)
	}
	defer x.disconnect()
	if x.client == nil {
		return
	}
	x.space.Leave()
	x.sendLast(x.client.SendLast)
	x.w.turn(func() {
		x.ended = true // from now on nobody else changes objects
		x.clientSeen(false)
		x.w.injected.gone(x)
		x.w.keep(x)
		x.recordEnd()
		x.w.detach(x)
	})
	left, rings := x.inOrder(), []*memfd.Shared(nil)
	x.w.turns(func() (more bool) {
		n := 0
		for begun := x.w.Engine.QPs.Spent(); n < min(len(left), removedPerTurn) && x.w.Engine.QPs.Spent()-begun < removedWork; n++ {
			o := left[n]
			if r := x.removeObject(o); r != nil {
				rings = append(rings, r)
			}
			o.base().remove()
		}
		if left = left[n:]; len(left) > 0 {
			return true
		}
		if x.w.CM.Gone(x) {
			return true
		}
		x.w.Engine.RemoveClient(x.client)
		return false
	})
	for _, r := range rings { // the engine has let go of them
		r.Close()
	}
}

// inOrder is the client's objects in the order in which they go: first
// queue pairs and ids, so that peers hear of the end, and shared receive queues, which
// other clients' queue pairs may use; then what those stood on.
func (x *Session) inOrder() []held {
	var stages [4][]held
	for _, v := range x.objects {
		stage := 3
		switch v.(type) {
		case *qpObject:
			stage = 0
		case *idObject:
			stage = 1
		case *srqObject:
			stage = 2
		}
		stages[stage] = append(stages[stage], v)
	}
	return slices.Concat(stages[:]...)
}

// removeObject removes what stands behind an object, and returns the memory that can
// be unmapped once the engine has let go of it, or nil.
func (x *Session) removeObject(v held) *memfd.Shared {
	switch o := v.(type) {
	case *qpObject:
		x.w.Engine.Datagrams.Forget(o.qp)
		x.removeQP(o)
		return o.ring
	case *idObject:
		x.w.CM.Destroy(o.ID)
	case *srqObject:
		o.leaveDomain()
		return o.ring
	case *cqObject:
		x.w.Engine.QPs.EndLate(o.cq)
		return o.ring
	case *xrcdObject:
		x.s.domains.leave(o.domain)
		x.closeXRC(o.file)
	case *mrObject:
		x.w.Engine.QPs.Spend(o.region.RemovalCost())
		x.w.Engine.QPs.Regions.Remove(o.region)
	case *mwObject:
		x.w.Engine.QPs.Regions.RemoveWindow(o.window)
	case *channelObject:
		o.socket.Close()
	case *contextObject:
		o.async.Close()
	case *cmChannelObject:
		o.forgetLate()
		o.socket.Close()
	}
	return nil
}
