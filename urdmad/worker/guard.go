package worker

import (
	"runtime"
	"runtime/debug"
)

// CatchFaults makes a fault at a mapped-away or truncated address a panic that
// Guard and FaultAddress understand, for the calling goroutine. A worker's
// thread has it on already.
func CatchFaults() { debug.SetPanicOnFault(true) }

// Guard runs fn and reports whether it touched memory that isn't there: a
// client truncated or punched its file, or unmapped what urdmad shares with it.
// Any other panic goes on. A call costs 5 ns and a caught
// fault 4 µs, so one frame suits a turn or a client's batch. What fn had done before the fault stays done.
func Guard(fn func()) (faulted bool, addr uintptr) {
	defer func() {
		if r := recover(); r != nil {
			if addr, faulted = FaultAddress(r); !faulted {
				panic(r)
			}
		}
	}()
	fn()
	return false, 0
}

// FaultAddress tells a memory fault from other recovered values. A nil
// dereference is not one: the runtime gives addresses below 4,096 no Addr
// method, so a bug of ours isn't blamed on a client.
func FaultAddress(recovered any) (addr uintptr, ok bool) {
	if _, isRuntime := recovered.(runtime.Error); !isRuntime {
		return 0, false
	}
	fault, ok := recovered.(interface{ Addr() uintptr })
	if !ok {
		return 0, false
	}
	return fault.Addr(), true
}
