package mpa_test

import (
	"fmt"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestTruncatedFile: memory that neither the kernel nor urdmad can access ends only its program's connection.
func TestTruncatedFile(t *testing.T) {
	for _, size := range []int{2000, 60000, 1 << 20} {
		for name, operation := range map[string]func(a, b *enginetest.QP, mine, file *enginetest.Region){
			"Write to it": func(a, _ *enginetest.QP, mine, file *enginetest.Region) {
				a.Post(enginetest.Write(1, file, 0), mine.SGE(0, size))
			},
			"Read of it": func(a, _ *enginetest.QP, mine, file *enginetest.Region) {
				a.Post(enginetest.Read(1, file, 0), mine.SGE(0, size))
			},
			"Write of it": func(a, b *enginetest.QP, mine, file *enginetest.Region) {
				b.Post(enginetest.Write(1, mine, 0), file.SGE(0, size))
			},
			"Send of it": func(a, b *enginetest.QP, mine, file *enginetest.Region) {
				b.Post(enginetest.Send(1), file.SGE(0, size))
			},
			"Read into it": func(a, b *enginetest.QP, mine, file *enginetest.Region) {
				b.Post(enginetest.Read(1, mine, 0), file.SGE(0, size))
			},
		} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				w := world(t, enginetest.Options{Seed: uint64(size)<<20 | uint64(len(name))<<8 | uint64(name[0]) + 1})
				a, b := w.Pair(false, nil)
				x, y := w.Pair(false, nil)
				mine, file := a.Client.Register(size, rw), b.Client.RegisterFile(size, rw)
				a.PostRecv(9, mine.SGE(0, size))
				b.PostRecv(9)
				if err := file.File.Truncate(0); err != nil {
					t.Fatal(err)
				}
				operation(a, b, mine, file)
				w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second)
				for _, q := range []*enginetest.QP{a, b} {
					var done []abi.CQE
					w.Until("the receive", 10*time.Second, func() bool { done = append(done, q.Recv.Poll()...); return len(done) > 0 })
					if done[0].Status != abi.StatusWRFlushErr {
						t.Errorf("%+v", done[0])
					}
				}
				w.Pass(5 * time.Second)
				idle(w)
			})
		}
	}
}
