package engine_test

import (
	"fmt"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestReadBeforeARefusedRequest: a Read that arrives together with a request that is refused is answered first, as on
// InfiniBand: it succeeds, and only the request behind it fails.
func TestReadBeforeARefusedRequest(t *testing.T) {
	for name, c := range map[string]struct {
		o     enginetest.Options
		local bool
	}{"TRP": {}, "RoCEv2": {o: enginetest.Options{RoCE: true}}, "within a urdmad": {local: true}} {
		for _, size := range []int{0, 8, 40000} {
			t.Run(fmt.Sprintf("%s/%d bytes", name, size), func(t *testing.T) {
				w := enginetest.New(t, c.o)
				x, y := w.Pair(c.local, nil)
				to, from := x.Client.Register(1<<16, enginetest.ReadWrite), y.Client.Register(1<<16, enginetest.ReadWrite)
				refused := enginetest.Write(2, from, 0)
				refused.RKey++
				x.Post(enginetest.Read(1, from, 0), to.SGE(0, size))
				x.Post(refused, to.SGE(0, 8))
				var got []abi.CQE
				w.Until("both are complete", 10*time.Second, func() bool {
					got = append(got, x.Send.Poll()...)
					return len(got) >= 2
				})
				if got[0].WRID != 1 || got[0].Status != abi.StatusSuccess || got[1].Status != abi.StatusRemAccessErr {
					t.Errorf("completions %+v", got)
				}
			})
		}
	}
}
