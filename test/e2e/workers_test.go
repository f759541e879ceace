package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/test/bystander"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestStandingWorker: while a worker stands still its clients wait and another worker's go
// on, and afterwards all do. On a port with one queue worker 0 asks for all, so
// there the other one stands.
func TestStandingWorker(t *testing.T) {
	cores := twoCores(t)
	settings := lab.Config{"death_timeout_ms": 60000, "workers": []any{lab.Config{"core": cores[0]}, lab.Config{"core": cores[1]}}}
	for _, x := range []struct {
		wire   lab.Wire
		stands []int
	}{{lab.UDP, []int{0, 1}}, {lab.TCP, []int{0, 1}}, {lab.Memif, []int{0, 1}}, {lab.AFPacket, []int{1}}} {
		t.Run(x.wire.Name, func(t *testing.T) {
			a, b := labtest.Join(t, x.wire.WithWorkers(2), settings)
			ctx, cancel := context.WithTimeout(context.Background(), 5*lab.Patience)
			defer cancel()
			var pairs [2]*bystander.Pair // a client of each worker, at either host
			for i := range pairs {
				p, err := bystander.New(ctx, a.Socket(), b.Socket(), fmt.Sprintf("%s:%d", a.Address, 7900+i), uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				pairs[i] = p
			}
			for _, worker := range x.stands {
				s := stand{t, threadOn(t, a.Daemon.PID(), cores[worker])}
				s.during(func() { oneGoesOn(t, worker, pairs) })
				before := rounds(pairs)
				await(t, "both pairs to go on", func() (bool, string) {
					now := rounds(pairs)
					return now[0] > before[0]+10 && now[1] > before[1]+10, fmt.Sprintf("worker %d: rounds %v, were %v", worker, now, before)
				})
			}
			for _, p := range pairs {
				if err := p.Stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func rounds(pairs [2]*bystander.Pair) (n [2]int64) {
	for i, p := range pairs {
		n[i] = p.Client.Rounds()
	}
	return n
}

// oneGoesOn waits for many rounds of one of the pairs, in which the other may end the one
// that it was in.
func oneGoesOn(t *testing.T, worker int, pairs [2]*bystander.Pair) {
	before := rounds(pairs)
	var more [2]int64
	await(t, "a pair to go on", func() (bool, string) {
		now := rounds(pairs)
		more = [2]int64{now[0] - before[0], now[1] - before[1]}
		return max(more[0], more[1]) > 100, fmt.Sprintf("worker %d stands, rounds %v", worker, more)
	})
	t.Logf("while worker %d stood: %v rounds", worker, more)
	if min(more[0], more[1]) > 1 {
		t.Errorf("worker %d stands, and both pairs go on: %v rounds", worker, more)
	}
}

// twoCores are two that this process may use.
func twoCores(t *testing.T) (two [2]int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	n := 0
	for core := 0; n < len(two); core++ {
		if core == len(set)*64 {
			t.Skip("SKIPPED: two workers with cores of their own need two processors")
		}
		if set.IsSet(core) {
			two[n] = core
			n++
		}
	}
	return two
}

// threadOn is the thread of a process that runs on one core alone: a worker.
func threadOn(t *testing.T, pid, core int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		tid, _ := strconv.Atoi(filepath.Base(f))
		var set unix.CPUSet
		if unix.SchedGetaffinity(tid, &set) == nil && set.Count() == 1 && set.IsSet(core) {
			return tid
		}
	}
	t.Fatalf("process %d has no thread that runs on core %d alone", pid, core)
	return 0
}

// stand stops one thread of another process, as only its tracer can.
type stand struct {
	t   *testing.T
	tid int
}

func (s *stand) during(fn func()) {
	s.t.Helper()
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(s.tid); err != nil {
		if os.Getuid() != 0 {
			s.t.Skipf("SKIPPED: a thread can't be stopped: %v; root may", err)
		}
		s.t.Fatal(err)
	}
	defer func() {
		if err := unix.PtraceDetach(s.tid); err != nil {
			s.t.Error(err)
		}
	}()
	if err := unix.PtraceInterrupt(s.tid); err != nil {
		s.t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(s.tid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		s.t.Fatalf("the thread did not stop: %v, status %#x", err, status)
	}
	fn()
}
