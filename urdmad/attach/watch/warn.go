package watch

import (
	"bytes"
	"syscall"
	"time"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// This file handles warnings about API pitfalls that client libraries detect (URDMA_WARN).

// warn answers WARN: it records, logs and counts the warning, and returns its full text from the
// table.
func (v *Watch) warn(x *control.Session, m *abi.WarnRequest, r *control.Reply) error {
	n := reason.Number(min(m.Number, 0xffff))
	if !words.Pitfall(n) {
		return syscall.EINVAL
	}
	text := textIn(m.Text[:])
	v.s.Log.Warn("a program makes a mistake", "client", x.Name(), "number", n.String(),
		"what", words.What(n), "where", text, "qpn", m.QPN)
	x.Do(func() {
		e := abi.TraceEvent{Kind: abi.TraceReason, QPN: m.QPN, Code: uint32(n)}
		w := v.workers[x.Worker()]
		if c := clientOf(x); c != nil {
			c.recorder.Warn(w.Engine.Now(), &e, text)
		}
		w.event(&x.Owner, &e, text, time.Now())
		w.warned++
	})
	var resp abi.ExplainResponse
	copy(resp.Text[:len(resp.Text)-1], paragraph(n, m.QPN, text))
	*r = control.Respond(&resp)
	return nil
}

// textIn returns the text of a client's field, up to the first NUL byte.
func textIn(field []byte) string {
	said, _, _ := bytes.Cut(field, []byte{0})
	return string(bytes.ToValidUTF8(said, []byte("?")))
}
