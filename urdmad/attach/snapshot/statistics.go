package snapshot

import (
	"context"
	"time"

	"urdma/inspect"
	"urdma/urdmad/core/qp"
)

// Statistics are the counts of a snapshot, of all queue pairs together: their size does not depend on how many
// objects there are.
type Statistics struct {
	Taken      time.Time
	Ports      []inspect.Port
	Loop       *inspect.Loop     // nil: unknown
	Traffic    []inspect.Traffic // of all present and past connections, by port
	Work       inspect.Work      // of all present and past queue pairs
	QueuePairs int
}

// Statistics gathers the counts; it may be called from any goroutine except a worker's. The counts of a queue pair
// may be missing until the next call if queue pairs are removed meanwhile; none counts twice.
func (t *Taker) Statistics(ctx context.Context) (*Statistics, error) {
	n := 0
	g := t.gathering(ctx, owner(), new(inspect.Snapshot))
	g.ports()
	for g.number, g.Worker = range t.server.Workers {
		pairs := g.Worker.Engine.QPs
		err := g.begin()
		if err == nil {
			err = g.Each(pairs.Len, func(i int) { g.addCounts(pairs.At(i)); n++ })
		}
		if err != nil {
			return nil, err
		}
	}
	all := g.Snapshot
	return &Statistics{g.clock.wall, all.Ports, all.Loop, all.Totals.Traffic, all.Totals.QP, n}, nil
}

// addCounts adds a queue pair's counts to the totals; on its worker's thread.
func (g *Gathering) addCounts(q *qp.QP) {
	t := g.Snapshot.Totals
	w := work(&q.Stats)
	t.QP.Add(&w)
	if c := q.Connection(); c != nil && c.Peer.IsValid() {
		if _, wire := wireState(q.Carrier(), g.Worker.Engine.Now()); wire != nil {
			t.Traffic[c.Dev].Add(&wire.Traffic)
		}
	}
}
