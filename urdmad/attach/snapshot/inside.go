package snapshot

import (
	"time"

	"urdma/inspect"
	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Warnings is the part of package control, which still has what warns of pitfalls.
func Warnings(g *Gathering) error {
	err := g.Ask(func() bool {
		if t := g.Snapshot.Totals; t != nil {
			t.Warned += g.Worker.Warned()
		}
		g.Worker.PastWarnings(g.Viewer, g.warnings)
		return false
	})
	if err != nil {
		return err
	}
	return g.Each(func() int { return len(g.Clients) }, func(i int) {
		if x := g.Clients[i]; !x.Gone() {
			g.warnings(&x.Owner, x.Client().Recorder.Warned(g.clock.nanoseconds))
		}
	})
}

// warnings adds what events of an owner's say that the program was warned of.
func (g *Gathering) warnings(owner *account.Owner, events []recorder.Event) {
	for i := range events {
		e := &events[i]
		if n := reason.Number(e.Code); e.Kind == abi.TraceReason && words.Pitfall(n) {
			g.Snapshot.Warnings = append(g.Snapshot.Warnings, inspect.Warning{Number: n.String(), Warned: time.Unix(0, e.TimeNs), PID: owner.PID,
				Command: owner.Name, QPN: e.QPN, What: words.What(n), Text: e.Text})
		}
	}
}
