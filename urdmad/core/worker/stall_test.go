package worker

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/fault"
)

// stallLoop is always busy, so every gap between two turns is a stall. It asks the kernel for the cause of
// a long one: the time in which the thread was runnable without a core is caused by the machine, the rest
// of the time without running by the Go runtime (see schedstat in proc(5)).
type stallLoop struct {
	last      Time
	account   schedAccount
	accountAt Time
	until     Time
	end       chan struct{}

	gaps, runtimeGaps int // over a millisecond: all, and those caused by the runtime
	longest           Time
	longestRuntime    Time
	turns             int
}

// schedAccount is a thread's running and waiting time.
type schedAccount struct{ ran, waited Time }

func readAccount() schedAccount {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return schedAccount{}
	}
	ran, _ := strconv.ParseInt(fields[0], 10, 64)
	waited, _ := strconv.ParseInt(fields[1], 10, 64)
	return schedAccount{Time(ran), Time(waited)}
}

const stallLimit = clock.Millisecond

func (l *stallLoop) Turn(now Time) (bool, Time) {
	l.turns++
	if l.last == 0 {
		l.settle()
		return true, clock.Never
	}
	gap := now - l.last
	if gap > l.longest {
		l.longest = gap
	}
	if gap > stallLimit {
		l.judge(gap)
	} else if now-l.accountAt > 20*clock.Millisecond {
		l.settle()
	}
	l.last = max(l.last, now)
	if now > l.until && l.end != nil {
		close(l.end)
		l.end = nil
	}
	return true, clock.Never
}

func (l *stallLoop) settle() {
	l.account = readAccount()
	l.accountAt = Now()
	l.last = l.accountAt
}

// judge splits a gap: since the last account the thread ran, waited for a core, or was blocked; only the last is
// caused by the runtime.
func (l *stallLoop) judge(gap Time) {
	l.gaps++
	before, at, now := l.account, l.accountAt, Now() // read before the new account
	l.settle()
	blocked := (now - at) - (l.account.ran - before.ran) - (l.account.waited - before.waited)
	blocked = min(blocked, gap)
	if blocked > l.longestRuntime {
		l.longestRuntime = blocked
	}
	if blocked > stallLimit {
		l.runtimeGaps++
	}
}

func (l *stallLoop) PrepareSleep(fds []int) ([]int, bool, bool) { return fds, false, false }
func (l *stallLoop) Woke()                                      {}

func (l *stallLoop) String() string {
	return fmt.Sprintf("%d turns, longest gap %.3f ms, %d over 1 ms; of these the runtime's: longest %.3f ms, %d over 1 ms",
		l.turns, float64(l.longest)/1e6, l.gaps, float64(l.longestRuntime)/1e6, l.runtimeGaps)
}

func measureStalls(t *testing.T, length time.Duration) *stallLoop {
	t.Helper()
	l := &stallLoop{until: Now() + Time(length), end: make(chan struct{})}
	end := l.end
	w := startWorker(t, l, DefaultPolicy(), Hooks{})
	select {
	case <-end:
	case <-time.After(length + time.Minute):
		t.Error("the worker never reached the end of its time: starved")
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	return l
}

var garbage atomic.Pointer[[]*[256]byte]

// litter keeps the garbage collector busy from n goroutines.
func litter(n int) (stop func()) {
	var stopped atomic.Bool
	gone := make(chan struct{}, n)
	for range n {
		go func() {
			for !stopped.Load() {
				heap := make([]*[256]byte, 4096)
				for i := range heap {
					heap[i] = new([256]byte)
				}
				garbage.Store(&heap)
				time.Sleep(200 * time.Microsecond)
			}
			gone <- struct{}{}
		}()
	}
	return func() {
		stopped.Store(true)
		for range n {
			<-gone
		}
	}
}

const baselineEnv = "URDMA_STALL_BASELINE"

// The child of TestStallsUnderGarbageCollection: the same loop in a process
// without garbage and without other goroutines.
func TestStallBaseline(t *testing.T) {
	if os.Getenv(baselineEnv) == "" {
		t.Skip("runs as the child of TestStallsUnderGarbageCollection")
	}
	debug.SetGCPercent(-1)
	fmt.Printf("baseline: %v\n", measureStalls(t, time.Second))
}

func runBaseline(t *testing.T) string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStallBaseline$", "-test.v")
	child.Env = append(os.Environ(), baselineEnv+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("baseline: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if found, ok := strings.CutPrefix(line, "baseline: "); ok {
			return strings.TrimSpace(found)
		}
	}
	return "printed nothing: " + string(out)
}

// This benchmarks a busy worker while goroutines allocate: its stalls must be caused by the machine rather
// than by the garbage collector. The report is for people; the assertion is generous, because a test
// machine may be busy.
func TestStallsUnderGarbageCollection(t *testing.T) {
	if readAccount() == (schedAccount{}) {
		t.Skip("the kernel keeps no schedstat for threads (CONFIG_SCHED_INFO)")
	}
	length := time.Second
	if os.Getenv("URDMA_LONG") != "" {
		length = 20 * time.Second
	}
	t.Logf("another process, no garbage:      %s", runBaseline(t))
	for _, prepared := range []bool{false, true} {
		if prepared {
			prepareRuntime(t)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		stop := litter(2)
		l := measureStalls(t, length)
		stop()
		runtime.ReadMemStats(&after)
		t.Logf("GOMAXPROCS %d, %3d collections: %v", runtime.GOMAXPROCS(0), after.NumGC-before.NumGC, l)
		if after.NumGC == before.NumGC {
			t.Error("the garbage collector never ran: nothing was tested")
		}
		if prepared && l.longestRuntime > 500*clock.Millisecond {
			t.Errorf("the runtime held the worker for %d ns", l.longestRuntime)
		}
	}
}

// prepareRuntime is PrepareRuntime for the length of a test.
func prepareRuntime(t *testing.T) {
	t.Helper()
	procs, percent := runtime.GOMAXPROCS(0), debug.SetGCPercent(100)
	PrepareRuntime(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		reserved.Store(false)
	})
}

// A sleeping worker must not delay the garbage collector, in any form of sleep.
func TestSleepingWorkerLetsCollectorRun(t *testing.T) {
	t.Run("letting go of the P", collectBesideSleeper)
	t.Run("holding the P", func(t *testing.T) {
		prepareRuntime(t)
		if !reserved.Load() {
			t.Skip("GOMAXPROCS or GODEBUG in the environment forbid it")
		}
		collectBesideSleeper(t)
	})
}

func collectBesideSleeper(t *testing.T) {
	l := &fakeLoop{}
	startWorker(t, l, longSleeper(), Hooks{})
	eventually(t, "asleep", l.sleeping.Load)
	done := make(chan time.Duration)
	go func() {
		begun := time.Now()
		for range 20 {
			runtime.GC()
		}
		done <- time.Since(begun) / 20
	}()
	select {
	case each := <-done:
		t.Logf("a collection took %v", each)
	case <-time.After(time.Minute):
		t.Fatal("20 collections took over a minute beside a sleeping worker")
	}
}

// A client truncates its file under a running worker during garbage collections: each fault must end one call and
// nothing else.
func TestFaultsInTurnsUnderGarbageCollection(t *testing.T) {
	defer litter(2)()
	page := unix.Getpagesize()
	fd, memory := clientMemory(t, 4*page)
	l := &faultyLoop{memory: memory, source: make([]byte, 4*page)}
	startWorker(t, l, longSleeper(), Hooks{})
	for i := range 200 {
		if err := unix.Ftruncate(fd, int64((i%4)*page)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Microsecond)
	}
	eventually(t, "faults and good turns", func() bool { return l.faults.Load() > 0 && l.turns.Load() > 0 })
	t.Logf("%d turns, %d of them faulted", l.turns.Load(), l.faults.Load())
}

type faultyLoop struct {
	memory, source []byte
	turns, faults  atomic.Int64
}

func (l *faultyLoop) Turn(Time) (bool, Time) {
	l.turns.Add(1)
	if _, faulted := fault.Guard(func() { copy(l.memory, l.source) }, nil); faulted {
		l.faults.Add(1)
	}
	return true, clock.Never
}

func (l *faultyLoop) PrepareSleep(fds []int) ([]int, bool, bool) { return fds, false, false }
func (l *faultyLoop) Woke()                                      {}

// clientMemory is a mapped file that the test can truncate.
func clientMemory(t *testing.T, size int) (fd int, memory []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("client", unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, int64(size))
	}
	if err == nil {
		memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Munmap(memory)
		_ = unix.Close(fd)
	})
	return fd, memory
}

// TestGarbageIsBounded: garbage may be eight times the memory in use by a small daemon; with more memory in
// use, it is limited to 64 MiB or the memory in use.
func TestGarbageIsBounded(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC in the environment wins")
	}
	prepareRuntime(t)
	for _, used := range []int{0, 20 << 20, 200 << 20} {
		buffers := make([]byte, used)
		LimitGarbage()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if most := max(m.HeapAlloc, mostGarbage) + 8<<20; m.NextGC-m.HeapAlloc > most {
			t.Errorf("with %d MiB in use the next collection is at %d MiB, expected %d at most", m.HeapAlloc>>20, m.NextGC>>20,
				(m.HeapAlloc+most)>>20)
		}
		runtime.KeepAlive(buffers)
	}
	if p := debug.SetGCPercent(100); p != 100 {
		t.Errorf("with 200 MiB in use there may be %d %% of garbage, expected 100", p)
	}
	LimitGarbage()
	if p := debug.SetGCPercent(100); p != rarely {
		t.Errorf("with little in use there may be %d %% of garbage, expected %d", p, rarely)
	}
}
