package engine_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestTruncatedFile: a client that truncates a file which it has registered ends itself
// alone, whether its pages are written to or read.
func TestTruncatedFile(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for name, operation := range map[string]func(id uint64, r *enginetest.Region,
			off int) abi.SQE{"Write": enginetest.Write, "Read": enginetest.Read} {
			w := enginetest.New(t, enginetest.Options{Seed: 63})
			a, b := w.Pair(local, nil)
			x, y := w.Pair(local, nil)
			mine, file := a.Client.Register(8192, enginetest.ReadWrite), b.Client.RegisterFile(8192, enginetest.ReadWrite)
			a.Post(enginetest.Write(1, file, 0), mine.SGE(0, 8192))
			enginetest.Expect(t, name, a.Send.Completions(1), []uint64{1}, 0)
			if err := file.File.Truncate(4096); err != nil {
				t.Fatal(err)
			}
			a.Post(operation(2, file, 0), mine.SGE(0, 8192))
			w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second)
			if n := len(b.Client.Faults); n != 1 {
				t.Fatalf("%s: the client that truncated was reported %d times", name, n)
			}
			b.Client.Remove(b)
			if e := a.Send.Completions(1)[0]; e.Status == abi.StatusSuccess {
				t.Errorf("%s: %+v", name, e)
			}
			if n := len(a.Client.Faults) + len(x.Client.Faults) + len(y.Client.Faults); n > 0 {
				t.Errorf("%s: %d others were blamed", name, n)
			}
		}
	})
}

// TestFaultEndsOneClient: memory that cannot be touched, as a client's sparse
// huge-page file with no page left gives, ends that client alone: the packets of
// others in the same burst are handled, and none is lost to the port.
func TestFaultEndsOneClient(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 6})
		var senders, receivers []*enginetest.QP
		for range 4 {
			a, b := w.Pair(local, nil)
			senders, receivers = append(senders, a), append(receivers, b)
		}
		var sinks, sources []*enginetest.Region
		for i, b := range receivers {
			sinks = append(sinks, b.Client.Register(1<<20, enginetest.ReadWrite))
			sources = append(sources, senders[i].Client.Register(1<<16, enginetest.ReadWrite))
		}
		for i, a := range senders {
			for k := range uint64(16) {
				a.Post(enginetest.Write(k, sinks[i], int(k)<<16), sources[i].SGE(0, 1<<16))
			}
		}
		bad := sinks[1].Region.Bytes(sinks[1].Base(), 4096)
		if err := unix.Mprotect(bad, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Mprotect(bad, unix.PROT_READ|unix.PROT_WRITE) })
		for i, a := range senders {
			if i == 1 {
				continue
			}
			for k, e := range a.Send.Completions(16) {
				if e.Status != abi.StatusSuccess || e.WRID != uint64(k) {
					t.Fatalf("sender %d: %+v", i, e)
				}
			}
		}
		if n := len(receivers[1].Client.Faults); n != 1 {
			t.Fatalf("the faulty client was reported %d times", n)
		}
		for i, b := range receivers {
			if i != 1 && len(b.Client.Faults) > 0 {
				t.Errorf("client %d was blamed: %v", i, b.Client.Faults)
			}
		}
		receivers[1].Client.Remove(receivers[1])
		for _, e := range senders[1].Send.Completions(16) {
			if e.Status == abi.StatusSuccess {
				t.Errorf("a write to memory that is not there succeeded: %+v", e)
			}
		}
		senders[1].Client.Event(abi.CMDisconnected, 10*time.Second)
		w.Pass(3 * time.Second)
		for _, h := range []*enginetest.Host{w.A, w.B} {
			if n := h.Port.Outstanding(); n > 32 {
				t.Errorf("host %s: %d packets are still held", h.Name, n)
			}
		}
	})
}

// TestFaultInCall: calls of Do that wait behind one that meets a fault are made all the same.
func TestFaultInCall(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 98})
	bad := w.A.NewClient().Register(4096, enginetest.ReadWrite)
	forbid(t, bad)
	called := 0
	w.A.Engine.Do(func() { called++ })
	w.A.Engine.Do(func() { bad.Region.Bytes(bad.Base(), 1)[0] = 1 })
	w.A.Engine.Do(func() { called++ })
	for range 2 {
		w.A.Engine.Turn(w.Now())
	}
	if n := len(bad.Client.Faults); n != 1 || called != 2 {
		t.Errorf("%d faults, and %d of 2 calls were made", n, called)
	}
}
