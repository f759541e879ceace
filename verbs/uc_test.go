package verbs_test

import (
	"errors"
	"testing"

	"urdma/verbs"
)

// newUC makes two queue pairs of type UC that are connected with each other.
func newUC(t *testing.T) (near, far *end) {
	t.Helper()
	d := startDaemon(t)
	near, far = newEnd(t, d.open(), verbs.QPOptions{Type: verbs.UC}), newEnd(t, d.open(), verbs.QPOptions{Type: verbs.UC})
	ok(t, near.ConnectNumber(far.Number()))
	ok(t, far.ConnectNumber(near.Number()))
	return near, far
}

// TestUC: Sends and Writes, with immediate data and without, between queue pairs of
// type UC.
func TestUC(t *testing.T) {
	const length, target = 20_000, 32 << 10
	near, far := newUC(t)
	for n, op := range []verbs.Opcode{verbs.OpSend, verbs.OpSendWithImm, verbs.OpWriteWithImm, verbs.OpWrite,
		verbs.OpSend} {
		fill(near.memory.Bytes()[:length], n)
		far.receive(t, 0, length)
		wr := verbs.SendWR{Op: op, Flags: verbs.Signaled, SGE: []verbs.SGE{near.memory.SGE(0, length)},
			Remote: far.memory.Remote(target),
			Imm:    0xabcd0000 + uint32(n)}
		ok(t, near.PostSend(&wr))
		near.next(t, verbs.StatusSuccess)
		if op == verbs.OpWrite { // the next message arrives after it
			ok(t, near.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled}))
			near.next(t, verbs.StatusSuccess)
			far.next(t, verbs.StatusSuccess)
			check(t, far.memory.Bytes()[target:target+length], n)
			continue
		}
		c := far.next(t, verbs.StatusSuccess)
		imm, at := op != verbs.OpSend, 0
		if op == verbs.OpWriteWithImm {
			at = target
		}
		if c.ByteLen != length || c.HasImm != imm || imm && c.Imm != wr.Imm || c.HasGRH {
			t.Errorf("operation %d: completion %+v", op, c)
		}
		check(t, far.memory.Bytes()[at:at+length], n)
	}
}

// TestUCLost: a forbidden Write is lost without an error; later messages arrive. Reads and atomics are
// refused.
func TestUCLost(t *testing.T) {
	near, far := newUC(t)
	far.receive(t, 0, 100)
	wrong := far.memory.Remote(0)
	wrong.RKey ^= 0xff00
	ok(t, near.PostSend(&verbs.SendWR{Op: verbs.OpWriteWithImm, Flags: verbs.Signaled,
		SGE: []verbs.SGE{near.memory.SGE(0, 8)}, Remote: wrong}))
	near.next(t, verbs.StatusSuccess)
	far.nothing(t, "a Write to wrong memory")
	ok(t, near.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte("after")}))
	near.next(t, verbs.StatusSuccess)
	if c := far.next(t, verbs.StatusSuccess); string(far.memory.Bytes()[:c.ByteLen]) != "after" {
		t.Errorf("received %q", far.memory.Bytes()[:c.ByteLen])
	}
	for _, op := range []verbs.Opcode{verbs.OpRead, verbs.OpFetchAdd, verbs.OpCmpSwap, verbs.OpSendWithInv} {
		wr := verbs.SendWR{Op: op, SGE: []verbs.SGE{near.memory.SGE(0, 8)}, Remote: far.memory.Remote(0)}
		if err := near.PostSend(&wr); !errors.Is(err, verbs.ErrWorkRequest) {
			t.Errorf("operation %d: %v", op, err)
		}
	}
}
