package watch

import (
	"time"

	"urdma/inspect"
	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/attach/snapshot"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Show implements snapshot.Part: it adds the warnings that programs got.
func (v *Watch) Show(g *snapshot.Gathering) error {
	w := v.workers[g.Worker]
	var clients []*client
	err := g.Ask(func() (more bool) {
		if t := g.Snapshot.Totals; t != nil {
			t.Warned += w.warned
		}
		var past []*ended
		clients, past = w.seenBy(g.Viewer)
		for _, e := range past {
			showWarnings(g, e.owner, e.events)
		}
		return false
	})
	if err != nil {
		return err
	}
	return g.Each(func() int { return len(clients) }, func(i int) {
		if c := clients[i]; !c.x.Gone() {
			showWarnings(g, &c.x.Owner, c.recorder.Warned(w.wall()))
		}
	})
}

// showWarnings adds the warnings among the events of an owner.
func showWarnings(g *snapshot.Gathering, owner *account.Owner, events []recorder.Event) {
	for i := range events {
		e := &events[i]
		if n := reason.Number(e.Code); e.Kind == abi.TraceReason && words.Pitfall(n) {
			g.Snapshot.Warnings = append(g.Snapshot.Warnings, inspect.Warning{Number: n.String(),
				Warned: time.Unix(0, e.TimeNs), PID: owner.PID, Command: owner.Name, QPN: e.QPN,
				What: words.What(n), Text: e.Text})
		}
	}
}
