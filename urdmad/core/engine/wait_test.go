package engine_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestWriteWakesWaiter: a client that waits on a completion queue with nothing
// posted gets an event for a Write into its memory; one that has work posted,
// or asked for solicited completions only, or did not ask, doesn't.
func TestWriteWakesWaiter(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 31, Path: linked.Path{Delay: 50 * time.Microsecond}})
		a, b := w.Pair(local, nil)
		src, dst := a.Client.Register(64, enginetest.ReadWrite), b.Client.Register(64, enginetest.ReadWrite)
		write := func(what string, events int) {
			t.Helper()
			a.Post(enginetest.Write(1, dst, 0), src.SGE(0, 64))
			a.Send.Completions(1)
			if n := b.Send.TakeEvents(); n != events {
				t.Fatalf("%s: %d events, expected %d", what, n, events)
			}
		}
		write("not armed", 0)
		b.Send.Ring.Arm(true)
		write("armed for solicited completions", 0)
		b.Send.Ring.Arm(false)
		write("armed", 1)
		write("no longer armed", 0)
		b.Send.Ring.Arm(false)
		b.Recv.Ring.Arm(false)
		b.PostRecv(7, dst.SGE(0, 64))
		write("armed, a receive posted elsewhere", 1)
		if n := b.Recv.TakeEvents(); n != 0 {
			t.Fatalf("the receive queue got %d events for a Write", n)
		}
		b.Send.Ring.Arm(false)
		a.PostRecv(9, src.SGE(0, 64))
		b.Post(abi.SQE{WRID: 8, Opcode: abi.WRSend, Flags: abi.SendSignaled}, dst.SGE(0, 64))
		a.Post(enginetest.Write(2, dst, 0), src.SGE(0, 64))
		enginetest.Expect(t, "Send", b.Send.Completions(1), []uint64{8}, 0)
		a.Send.Completions(1)
		if n := b.Send.TakeEvents(); n != 1 {
			t.Fatalf("%d events, expected that of the completion alone", n)
		}
	})
}
