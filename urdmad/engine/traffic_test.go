package engine_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/engine/enginetest"
)

// seeds is how many seeds a randomized test takes.
func seeds(short int) uint64 {
	if os.Getenv("URDMA_LONG") != "" {
		return uint64(short) * 20
	}
	return uint64(short)
}

var lossy = linked.Path{Loss: 0.03, Duplicate: 0.03, Reorder: 0.1, Corrupt: 0.01, Delay: 20 * time.Microsecond,
	Jitter: 5 * time.Microsecond, ReorderBy: 60 * time.Microsecond}

func TestTraffic(t *testing.T) {
	slow := linked.Path{Delay: 100 * time.Microsecond, Rate: 1e9}
	awful := linked.Path{Loss: 0.2, Duplicate: 0.1, Reorder: 0.3, Corrupt: 0.05, Delay: 50 * time.Microsecond}
	cases := []struct {
		name  string
		opt   enginetest.Options
		load  enginetest.Load
		local bool
		seeds int
	}{
		{"clean", enginetest.Options{}, enginetest.Load{Ops: 200, MaxSize: 100000}, false, 10},
		{"jumbo", enginetest.Options{MTU: 9000}, enginetest.Load{Ops: 200, MaxSize: 100000}, false, 10},
		{"long", enginetest.Options{MTU: 9000, Path: lossy}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}, false, 2},
		{"lossy", enginetest.Options{Path: lossy}, enginetest.Load{Ops: 200, MaxSize: 40000}, false, 30},
		{"awful", enginetest.Options{Path: awful}, enginetest.Load{Ops: 60, MaxSize: 20000}, false, 20},
		{"slow", enginetest.Options{Path: slow}, enginetest.Load{Ops: 100, MaxSize: 40000}, false, 5},
		{"plain", enginetest.Options{Plain: true}, enginetest.Load{Plain: true, Ops: 200, MaxSize: 40000}, false, 10},
		{"plain lossy", enginetest.Options{Plain: true, Path: lossy}, enginetest.Load{Plain: true, Ops: 100, MaxSize: 40000}, false, 20},
		{"wrap", enginetest.Options{NearWrap: true, Path: lossy}, enginetest.Load{Ops: 200, MaxSize: 40000}, false, 20},
		{"small window", enginetest.Options{Window: 4, Path: lossy}, enginetest.Load{Ops: 60, MaxSize: 10000}, false, 10},
		{"full port", enginetest.Options{TxRing: 3, Path: linked.Path{Rate: 1e9, Loss: 0.01}}, enginetest.Load{Ops: 100, MaxSize: 30000}, false, 10},
		{"checksum offload", enginetest.Options{Checksum: true, Path: lossy}, enginetest.Load{Ops: 100, MaxSize: 30000}, false, 5},
		{"local", enginetest.Options{}, enginetest.Load{Ops: 300, MaxSize: 100000}, true, 10},
		{"local long", enginetest.Options{}, enginetest.Load{Ops: 20, MaxSize: 3 << 20}, true, 2},
		{"fallback", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Fallback: true}, false, 5},
		{"fallback lossy", enginetest.Options{Path: lossy}, enginetest.Load{Ops: 60, MaxSize: 20000, Fallback: true}, false, 5},
		{"fallback local", enginetest.Options{}, enginetest.Load{Ops: 100, MaxSize: 20000, Fallback: true}, true, 5},
		{"one read", enginetest.Options{MaxReads: 1, Path: lossy}, enginetest.Load{Ops: 60, MaxSize: 20000}, false, 5},
		{"immediate", enginetest.Options{Immediate: true, Path: lossy}, enginetest.Load{Ops: 200, MaxSize: 40000}, false, 20},
		{"immediate fallback", enginetest.Options{Immediate: true, Path: lossy}, enginetest.Load{Ops: 60, MaxSize: 20000, Fallback: true}, false, 5},
		{"not ready", enginetest.Options{RNRRetry: 7}, enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, false, 10},
		{"not ready lossy", enginetest.Options{RNRRetry: 7, Path: lossy}, enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, false, 20},
		{"not ready plain", enginetest.Options{RNRRetry: 7, Path: lossy, Plain: true}, enginetest.Load{Plain: true, Ops: 100, MaxSize: 20000, NotReady: true}, false, 10},
		{"not ready small window", enginetest.Options{RNRRetry: 7, Path: lossy, Window: 8}, enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true}, false, 10},
		{"not ready local", enginetest.Options{RNRRetry: 7}, enginetest.Load{Ops: 100, MaxSize: 20000, NotReady: true}, true, 10},
		{"not ready fallback", enginetest.Options{RNRRetry: 7, Path: lossy}, enginetest.Load{Ops: 60, MaxSize: 20000, NotReady: true, Fallback: true}, false, 5},
		{"no reads", enginetest.Options{Path: lossy}, enginetest.Load{Ops: 100, MaxSize: 20000, NoReads: true, SigAll: true}, false, 5},
	}
	for _, c := range cases {
		for seed := uint64(1); seed <= seeds(c.seeds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				opt := c.opt
				opt.Seed, opt.Path = seed, linked.Path{}
				w := enginetest.New(t, opt)
				a, b := w.Pair(c.local, nil)
				w.SetPath(c.opt.Path)
				w.NewTraffic(a, b, c.load).Run(120 * time.Second)
				w.Pass(5 * time.Millisecond)
				if n := w.A.Port.Outstanding() + w.B.Port.Outstanding(); n > 64 { // what a port allocates ahead
					t.Errorf("%d packets are still held", n)
				}
			})
		}
	}
}
