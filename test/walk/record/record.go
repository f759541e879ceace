// Package record records calls and returns of functions, for package walk, in which each function of the core calls
// it.
package record

import (
	"runtime"
	"sync/atomic"
	"syscall"
)

// Step is the call of a function, or its return.
type Step struct {
	Package, File, Function string
	Left                    bool
}

var (
	thread atomic.Int64 // its calls are recorded; 0: none
	steps  []Step
)

// In records a call, and returns a function that records the return.
func In(pkg, file, function string) func() {
	if on := thread.Load(); on == 0 || on != int64(syscall.Gettid()) {
		return func() {}
	}
	steps = append(steps, Step{Package: pkg, File: file, Function: function})
	return func() { steps = append(steps, Step{Package: pkg, File: file, Function: function, Left: true}) }
}

// During returns the steps of fn, on this goroutine only.
func During(fn func()) []Step {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	steps = nil
	thread.Store(int64(syscall.Gettid()))
	fn()
	thread.Store(0)
	return steps
}
