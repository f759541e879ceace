package top

import (
	"fmt"
	"io"

	"urdma/inspect"
	"urdma/urdma/report"
)

// Lines writes a line for each port, one for each worker if there are several, and one for the busiest queue pair.
func Lines(w io.Writer, last, now *inspect.Snapshot, order Order) error {
	r := compare(last, now, order)
	at := now.Taken.Local().Format("15:04:05")
	for i := range r.ports {
		p := &r.ports[i]
		_, err := fmt.Fprintf(w, "%s port %s rx %s/s tx %s/s rx-packets %s/s tx-packets %s/s resent %s/s dropped %s/s\n", at,
			p.Name,
			rate(p.rxBytes), rate(p.txBytes), report.Count(p.rxPackets), report.Count(p.txPackets), report.Count(p.resent),
			report.Count(p.dropped))
		if err != nil {
			return err
		}
	}
	for i := range r.workers {
		k := &r.workers[i]
		if _, err := fmt.Fprintf(w, "%s worker %d busy %.0f%% asleep %.0f%% rx-packets %s/s handed-on %s/s\n", at, k.Number,
			100*k.busy, 100*k.asleep,
			report.Count(k.received), report.Count(k.handedOn)); err != nil {
			return err
		}
	}
	if len(r.pairs) == 0 || order.of(&r.pairs[0]) == 0 {
		return nil
	}
	p := &r.pairs[0]
	_, err := fmt.Fprintf(w, "%s qp %06x pid %d %s out %s/s in %s/s messages %s/s resent %s/s\n", at, p.QPN, p.PID,
		p.Command,
		rate(p.out), rate(p.in), report.Count(p.messages), report.Count(p.resent))
	return err
}
