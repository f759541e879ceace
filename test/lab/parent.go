package lab

import (
	"os/exec"
	"runtime"
	"sync"
)

// parent takes what starts processes to the one thread that is the parent of all of
// them. Pdeathsig kills a process when its parent ends, and that is the thread that
// forked it (prctl(2), PR_SET_PDEATHSIG), which may be any of Go's: one ends with a
// goroutine that returns while it is locked to it, and whatever had ever been started
// from there would go as well. This one ends with the program.
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
