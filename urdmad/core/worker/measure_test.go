package worker

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestMeasureOnBusyCore: while another process uses its core, neither a garbage collection nor another
// goroutine waits for the yielding thread, however few Ps there are. If stopping the world hangs, no timer
// of the process runs, so each case is a process of its own, which the test ends after a time-out.
func TestMeasureOnBusyCore(t *testing.T) {
	core := int(currentCore())
	if core < 0 {
		t.Skip("the kernel doesn't say which core this is")
	}
	if which := os.Getenv("URDMA_TEST_BUSY"); which != "" {
		besideHog(t, which, core)
		return
	}
	for _, c := range []struct{ which, procs string }{{"collect", "4"}, {"measure", "1"}} {
		t.Run(c.which, func(t *testing.T) {
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestMeasureOnBusyCore$")
			cmd.Env = append(os.Environ(), "URDMA_TEST_BUSY="+c.which, "GOMAXPROCS="+c.procs)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v (%v): %s", err, ctx.Err(), out)
			}
		})
	}
}

func besideHog(t *testing.T, which string, core int) {
	runtime.LockOSThread() // the hog ends with the thread that started it
	defer runtime.UnlockOSThread()
	restore, err := pin(core)
	if err != nil {
		t.Fatal(err)
	}
	hog := exec.Command("sh", "-c", "while :; do :; done")
	hog.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = hog.Start() // on that core
	restore()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	if which == "measure" {
		if m := Measure(core); m.KeepsCore {
			t.Error("keepsCore, where the partner had no P")
		}
		return
	}
	p := partner{ready: make(chan error)}
	go p.run(core)
	if err := <-p.ready; err != nil {
		t.Fatal(err)
	}
	defer p.stop.Store(true)
	for range 5 {
		runtime.GC()
	}
}
