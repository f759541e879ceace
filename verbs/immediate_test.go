package verbs_test

import (
	"testing"

	"urdma/verbs"
)

// TestImmediate: both operations with immediate data, and what the receiver's
// completions say.
func TestImmediate(t *testing.T) {
	p := connect(t, verbs.ConnOptions{}, verbs.ConnOptions{})
	out, in := memory(t, p.dialed, 4096, true), memory(t, p.accepted, 8192, true)
	ctx := patience(t)
	for i := range 2 {
		ok(t, p.accepted.PostRecv(&verbs.RecvWR{ID: uint64(i), SGE: []verbs.SGE{in.SGE(0, 4096)}}))
	}
	fill(out.Bytes(), 3)
	ok(t, p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpSendWithImm, Imm: 0x01020304, SGE: []verbs.SGE{out.SGE(0, 3000)}}))
	ok(t, p.dialed.PostSend(&verbs.SendWR{Op: verbs.OpWriteWithImm, Imm: 7, SGE: []verbs.SGE{out.SGE(0, 4096)},
		Remote: in.Remote(4096)}))
	got, err := p.accepted.Recv(ctx)
	ok(t, err)
	if got.Op != verbs.DidRecv || !got.HasImm || got.Imm != 0x01020304 || got.ByteLen != 3000 {
		t.Errorf("Send with immediate: %+v", got)
	}
	check(t, in.Bytes()[:3000], 3)
	got, err = p.accepted.Recv(ctx)
	ok(t, err)
	if got.Op != verbs.DidRecvWriteWithImm || !got.HasImm || got.Imm != 7 || got.ByteLen != 4096 || got.ID != 1 {
		t.Errorf("Write with immediate: %+v", got)
	}
	check(t, in.Bytes()[4096:], 3)
}
