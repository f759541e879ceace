package control

import (
	"slices"

	"urdma/urdmad/control/memfd"
)

// removedPerTurn is the largest number of an ended client's objects that a turn removes, and
// removedWork the work limit for that, in units of qp.Table.Spent.
const (
	removedPerTurn = 64
	removedWork    = 2 << 20
)

// cleanUp removes all objects of the client, some in each turn.
func (x *Session) cleanUp() {
	x.s.over(x)
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
		x.ended = true // from now on only cleanUp changes objects
		x.s.goes(x)
		x.w.detach(x)
	})
	left, rings := x.inOrder(), []*memfd.Shared(nil)
	x.w.turns(func() (more bool) {
		n := 0
		for begun := x.w.Engine.QPs.Spent(); n < min(len(left), removedPerTurn) &&
			x.w.Engine.QPs.Spent()-begun < removedWork; n++ {
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
	for _, r := range rings { // the engine no longer uses them
		r.Close()
	}
}

// inOrder returns the client's objects in the order of removal: first queue pairs and ids, so
// that peers learn of the end, and shared receive queues, which other clients' queue pairs may
// use; then the objects that these depended on.
func (x *Session) inOrder() []Object {
	var stages [4][]Object
	for _, v := range x.objects {
		stage := 3
		switch v.(type) {
		case *QP:
			stage = 0
		case *ID:
			stage = 1
		case *SRQ:
			stage = 2
		}
		stages[stage] = append(stages[stage], v)
	}
	return slices.Concat(stages[:]...)
}

// removeObject removes an object. It returns memory that can be unmapped once the engine no
// longer uses it, or nil.
func (x *Session) removeObject(v Object) *memfd.Shared {
	switch o := v.(type) {
	case *QP:
		x.w.Engine.Datagrams.Forget(o.QP)
		x.removeQP(o)
		return o.ring
	case *ID:
		x.w.CM.Destroy(o.ID)
	case *SRQ:
		o.leaveDomain()
		return o.ring
	case *CQ:
		return o.ring
	case *XRCD:
		x.s.domains.leave(o.domain)
		x.closeXRC(o.file)
	case *MR:
		x.w.Engine.QPs.Spend(o.Region.RemovalCost())
		x.w.Engine.QPs.Regions.Remove(o.Region)
	case *MW:
		x.w.Engine.QPs.Regions.RemoveWindow(o.Window)
	case *Channel:
		o.Socket.Close()
	case *Context:
		o.Async.Close()
	case *EventChannel:
		o.Socket.Close()
	}
	return nil
}
