package qp_test

import (
	"syscall"
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

const (
	sparse = 200000 // length of a region for on-demand paging
	hole   = 100000 // offset of its first byte that the client has not mapped
)

// onDemand registers memory with a hole at its end, which is there for who does not ask the check.
func onDemand(c *enginetest.Client, trusted bool) *enginetest.Region {
	register := c.RegisterFallback
	if trusted {
		register = c.RegisterDirect
	}
	r := register(sparse, enginetest.ReadWrite)
	first := r.ClientAddr(r.Base())
	r.Check = func(addr uint64, n int, _ bool) error {
		if addr-first+uint64(n) > hole {
			return syscall.ENOENT
		}
		return nil
	}
	return r
}

// TestOnDemandPeer: a peer's access to a hole is refused. A Write to memory of a client that is not trusted is
// noticed too late for that, and the connection ends. Nothing is written to the hole.
func TestOnDemandPeer(t *testing.T) {
	for name, op := range map[string]func(uint64, *enginetest.Region, int) abi.SQE{
		"Write": enginetest.Write, "Read": enginetest.Read} {
		for who, trusted := range map[string]bool{"trusted": true, "others": false} {
			t.Run(name+"/"+who, func(t *testing.T) {
				enginetest.Both(t, func(t *testing.T, local bool) {
					w := enginetest.New(t, enginetest.Options{Seed: 64})
					a, b := w.Pair(local, nil)
					here, there := a.Client.Register(sparse, enginetest.ReadWrite), onDemand(b.Client, trusted)
					for i := range here.Bytes {
						here.Bytes[i] = 1
					}
					a.Post(op(1, there, 0), here.SGE(0, hole))
					enginetest.Expect(t, "sender", a.Send.Completions(1), []uint64{1}, abi.StatusSuccess)
					a.Post(op(2, there, 0), here.SGE(0, hole+1))
					got := a.Send.Completions(1)[0]
					if got.Status == abi.StatusSuccess || (trusted || name == "Read") && got.Status != abi.StatusRemAccessErr {
						t.Errorf("completion %+v", got)
					}
					if there.Bytes[hole] != 0 {
						t.Error("the hole was written")
					}
				})
			})
		}
	}
}

// TestOnDemandLocal: a client's own access to a hole fails its work request; a receive only if the message needs it.
func TestOnDemandLocal(t *testing.T) {
	for who, trusted := range map[string]bool{"trusted": true, "others": false} {
		t.Run(who, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				w := enginetest.New(t, enginetest.Options{Seed: 65})
				a, b := w.Pair(local, nil)
				out, in := onDemand(a.Client, trusted), onDemand(b.Client, trusted)
				for id := range uint64(2) {
					b.PostRecv(id+1, in.SGE(0, sparse))
				}
				a.Post(enginetest.Send(1), out.SGE(0, hole))
				enginetest.Expect(t, "receiver", b.Recv.Completions(1), []uint64{1}, abi.StatusSuccess)
				enginetest.Expect(t, "sender", a.Send.Completions(1), []uint64{1}, abi.StatusSuccess)
				a.Post(enginetest.Send(2), out.SGE(0, hole), out.SGE(0, 1))
				enginetest.Expect(t, "receiver", b.Recv.Completions(1), []uint64{2}, abi.StatusLocProtErr)
				if got := a.Send.Completions(1); got[0].Status == abi.StatusSuccess {
					t.Errorf("sender %+v", got)
				}
				c, d := w.Pair(local, nil)
				from := onDemand(c.Client, trusted)
				c.Post(enginetest.Write(1, d.Client.Register(sparse, enginetest.ReadWrite), 0), from.SGE(0, hole+1))
				enginetest.Expect(t, "sender", c.Send.Completions(1), []uint64{1}, abi.StatusLocProtErr)
			})
		})
	}
}

// TestOnDemandPieces: the check is asked about a long message piece by piece, not in each packet about all that is
// still to come: that would cost the worker much if the memory has many mappings.
func TestOnDemandPieces(t *testing.T) {
	for name, op := range map[string]func(uint64, *enginetest.Region, int) abi.SQE{
		"Write": enginetest.Write, "Read": enginetest.Read} {
		for _, roce := range []bool{false, true} {
			w := enginetest.New(t, enginetest.Options{Seed: 66, RoCE: roce})
			a, b := w.Pair(false, nil)
			here, there := a.Client.Register(sparse, enginetest.ReadWrite), b.Client.RegisterDirect(sparse, enginetest.ReadWrite)
			longest := 0
			there.Check = func(_ uint64, n int, _ bool) error { longest = max(longest, n); return nil }
			a.Post(op(1, there, 0), here.SGE(0, sparse))
			enginetest.Expect(t, "sender", a.Send.Completions(1), []uint64{1}, abi.StatusSuccess)
			if longest == 0 || longest > 64<<10 {
				t.Errorf("%s, RoCE %t: the check was asked about %d bytes", name, roce, longest)
			}
		}
	}
}
