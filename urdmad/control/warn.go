package control

import (
	"bytes"
	"syscall"
	"time"

	"urdma/reason"
	"urdma/reason/words"
	"urdma/verbs/abi"
)

// This file is what becomes of the warnings of pitfalls that programs' libraries find
// (URDMA_WARN).

// warn answers WARN: the warning is recorded, logged and counted, and goes back with all
// that the table has of it.
func (x *Session) warn(m *abi.WarnRequest, r *Reply) error {
	n := reason.Number(min(m.Number, 0xffff))
	if !words.Pitfall(n) {
		return syscall.EINVAL
	}
	text := SaidIn(m.Text[:])
	x.s.Log.Warn("a program makes a mistake", "client", x.name, "number", n.String(), "what", words.What(n), "where", text, "qpn", m.QPN)
	x.Do(func() {
		e := abi.TraceEvent{Kind: abi.TraceReason, QPN: m.QPN, Code: uint32(n)}
		if x.client != nil {
			x.client.Recorder.Warn(x.w.Engine.Now(), &e, text)
		}
		x.w.event(&x.Owner, &e, text, time.Now())
		x.w.warned++
	})
	var resp abi.ExplainResponse
	copy(resp.Text[:len(resp.Text)-1], paragraph(n, m.QPN, text))
	*r = Respond(&resp)
	return nil
}

// SaidIn is the text of a client's field, which ends at the first 0.
func SaidIn(field []byte) string {
	said, _, _ := bytes.Cut(field, []byte{0})
	return string(bytes.ToValidUTF8(said, []byte("?")))
}
