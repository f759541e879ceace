package control

import (
	"cmp"
	"maps"
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
	x.SendLast(x.client.SendLast)
	x.w.Turn(func() {
		x.ended = true // from now on only cleanUp changes objects
		x.s.goes(x)
		x.w.detach(x)
	})
	left, rings := x.inOrder(), []*memfd.Shared(nil)
	x.w.Turns(func() (more bool) {
		n := 0
		for begun := x.w.Engine.QPs.Spent(); n < min(len(left), removedPerTurn) &&
			x.w.Engine.QPs.Spent()-begun < removedWork; n++ {
			o := left[n]
			if r := o.End(); r != nil {
				rings = append(rings, r)
			}
			o.Info().Remove()
		}
		if left = left[n:]; len(left) > 0 {
			return true
		}
		if x.s.left(x) {
			return true
		}
		x.w.Engine.RemoveClient(x.client)
		return false
	})
	for _, r := range rings { // the engine no longer uses them
		r.Close()
	}
}

// inOrder returns the client's objects in the order of removal.
func (x *Session) inOrder() []Object {
	return slices.SortedFunc(maps.Values(x.objects), func(a, b Object) int { return cmp.Compare(a.Rank(), b.Rank()) })
}
