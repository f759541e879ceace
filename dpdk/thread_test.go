package dpdk

import "runtime"

// onRegisteredThread runs f on a thread of its own that the EAL knows. The
// thread ends with the goroutine that calls this.
func onRegisteredThread(f func()) error {
	runtime.LockOSThread()
	if err := RegisterThread(); err != nil {
		return err
	}
	defer UnregisterThread()
	f()
	return nil
}
