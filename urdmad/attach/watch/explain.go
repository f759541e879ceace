package watch

import (
	"fmt"
	"strings"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/attach/recorder"
	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// explain answers EXPLAIN: it returns a text about a failure of the session's.
func (v *Watch) explain(x *control.Session, m *abi.ExplainRequest, r *control.Reply) error {
	n := reason.Number(min(m.Number, 0xffff))
	text := ""
	var events []recorder.Event
	x.Do(func() {
		if c := clientOf(x); c != nil {
			events = c.events()
		}
	})
	recorder.Sort(events)
	for _, e := range events { // use the last event that matches
		if e.Kind != abi.TraceReason || m.QPN != 0 && m.QPN != e.QPN {
			continue
		}
		of := reason.Number(e.Code)
		if of == n || n&^0xff == abi.ExplainEvent && m.QPN != 0 || n == abi.ExplainConnection && of&^0xf == n {
			text = e.Text
			if n == abi.ExplainConnection {
				n = of
			}
		}
	}
	var resp abi.ExplainResponse
	copy(resp.Text[:len(resp.Text)-1], paragraph(n, m.QPN, text))
	*r = control.Respond(&resp)
	return nil
}

// paragraph formats a reason and its details, one line each.
func paragraph(n reason.Number, qpn uint32, text string) string {
	row, _ := words.Find(n)
	var b strings.Builder
	text, refused := strings.CutPrefix(text, refusedPeer)
	switch {
	case refused:
		fmt.Fprintf(&b, "queue pair %06x refused its peer, which is told: ", qpn)
	case qpn != 0:
		fmt.Fprintf(&b, "queue pair %06x: ", qpn)
	}
	fmt.Fprintf(&b, "%v, %s", n, words.What(n))
	for _, part := range [...]struct{ head, text string }{{"", text}, {"means: ", row.Means},
		{"change: ", row.Change}, {"see: ", row.See}} {
		if part.text != "" {
			b.WriteString("\n  " + part.head + part.text)
		}
	}
	return b.String()
}
