package dpdk

import "runtime"

// onRegisteredThread runs f on a thread registered with the EAL, which ends with the calling goroutine.
func onRegisteredThread(f func()) error {
	runtime.LockOSThread()
	if err := RegisterThread(); err != nil {
		return err
	}
	defer UnregisterThread()
	f()
	return nil
}
