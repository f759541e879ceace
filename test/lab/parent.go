package lab

import (
	"os/exec"
	"runtime"
	"sync"
)

// parent returns the channel to the thread that starts all processes. The kernel kills a process when its parent
// ends (prctl(2), PR_SET_PDEATHSIG), and the parent is the thread that forked it, which may be any of Go's. Such a
// thread ends with a goroutine that returns while it is locked to the thread; the kernel would then kill all
// processes that this thread had started. The parent thread ends only with the program.
var parent = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

func startFromParent(cmd *exec.Cmd) error {
	started := make(chan error)
	parent() <- func() { started <- cmd.Start() }
	return <-started
}
