package injector

import (
	"slices"

	"urdma/inject"
	"urdma/inspect"
	"urdma/urdmad/attach/snapshot"
)

// Show implements snapshot.Part: it adds the rules of a worker and their hits.
func (n *Injector) Show(g *snapshot.Gathering) error {
	m := n.workers[g.Worker]
	err := g.Ask(func() (more bool) {
		if t := g.Snapshot.Totals; t != nil {
			t.Injected += m.hits
		}
		return false
	})
	for _, list := range []*[]*rule{&m.ended, &m.rules} {
		if err == nil {
			err = g.Each(func() int { return len(*list) }, func(i int) { show(g, (*list)[i]) })
		}
	}
	return err
}

// show adds a rule if the viewer may see it. Other workers may have the same rule, with the same
// number; their counts are summed.
func show(g *snapshot.Gathering, i *rule) {
	if !g.Viewer.Sees(i.by) {
		return
	}
	v := inspect.Injection{Number: i.number, Statement: i.text, PID: i.by.PID, Command: i.by.Name, UID: i.by.UID,
		Created: g.Time(i.since), Own: i.own, Seen: i.Seen, Hits: i.Hits, State: "active"}
	if i.stage != nil {
		v.Seen, v.Hits = i.stage.Seen, i.stage.Hits
	}
	switch {
	case i.over:
		v.State = "ended"
	case i.waits != nil:
		v.State = "waiting"
	case i.Point == inject.Post:
		v.State = "library"
	}
	list := &g.Snapshot.Injections
	at := slices.IndexFunc(*list, func(o inspect.Injection) bool { return o.Number == v.Number })
	if at < 0 {
		*list = append(*list, v)
		return
	}
	v.Seen, v.Hits = v.Seen+(*list)[at].Seen, v.Hits+(*list)[at].Hits
	(*list)[at] = v
}
