package trp_test

import (
	"runtime"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestIdleConnectionsAreSmall: an idle connection uses little memory, before its first message and after it was busy
// with Reads and more segments than a window has.
func TestIdleConnectionsAreSmall(t *testing.T) {
	const (
		pairs = 48
		most  = 10 << 10 // bytes of heap per end; a ring for a whole window needs 32 KiB
	)
	w := enginetest.New(t, enginetest.Options{Seed: 12})
	ca, cb := w.A.NewClient(), w.B.NewClient()
	want := abi.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 1, MaxRecvSGE: 1}
	var a, b [pairs]*enginetest.QP
	qa, qb := ca.NewCQ(1024), cb.NewCQ(1024)
	for i := range pairs {
		a[i], b[i] = ca.NewQPOn(&want, qa, qa), cb.NewQPOn(&want, qb, qb)
	}
	before := heap()
	check := func(when string) {
		each := (heap() - before) / (2 * pairs)
		t.Logf("%s: %d bytes an end", when, each)
		if each > most {
			t.Errorf("%s, an end of a connection takes %d bytes of heap, expected at most %d", when, each, most)
		}
	}
	for i := range pairs {
		enginetest.Join(a[i], b[i], 16)
	}
	check("before the first message")
	keepBusy(t, w, a[:], b[:])
	w.Pass(time.Second)
	check("idle again")
	runtime.KeepAlive(w)
}

// keepBusy lets each queue pair of a write much and read much.
func keepBusy(t *testing.T, w *enginetest.World, a, b []*enginetest.QP) {
	const size = 1 << 20
	src := a[0].Client.Register(size, abi.AccessLocalWrite)
	dst := b[0].Client.Register(size, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead)
	defer src.Deregister()
	defer dst.Deregister()
	for _, q := range a {
		q.Post(enginetest.Write(1, dst, 0), src.SGE(0, size))
		for i := range 16 {
			q.Post(enginetest.Read(uint64(2+i), dst, 4096*i), src.SGE(4096*i, 4096))
		}
		done := 0
		for range 100000 {
			for _, c := range q.Send.Poll() {
				if done++; c.Status != abi.StatusSuccess {
					t.Fatalf("completion %+v", c)
				}
			}
			if done == 17 {
				break
			}
			w.Step()
		}
		if done != 17 {
			t.Fatalf("%d of 17 work requests completed", done)
		}
	}
}

// heap returns the memory in use after a garbage collection.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
