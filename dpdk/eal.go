package dpdk

/*
#include <stdlib.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// eal is the EAL, of which a process can have only one.
var eal struct {
	mu      sync.Mutex
	started bool
	ended   bool
	log     *ealLog
	dir     string // the runtime directory that it created
	// a device has to stay open until the process ends, because closing it would remove another user's XDP
	// program
	kept atomic.Bool
}

// startEAL starts the EAL. If it is already running, args are ignored: its memory and cores can't be changed.
func startEAL(args []string, log *slog.Logger) error {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	switch {
	case eal.ended:
		return fmt.Errorf("dpdk: the EAL was cleaned up; DPDK can't start it twice in a process")
	case eal.started:
		return nil
	}
	if eal.log == nil {
		l, err := captureLog(log)
		if err != nil {
			return err
		}
		eal.log = l
	}
	log.Debug("starting the EAL", "args", strings.Join(args, " "))
	if err := initEAL(args); err != nil {
		removeRuntimeDir(C.GoString(C.rte_eal_get_runtime_dir()))
		return fmt.Errorf("dpdk: rte_eal_init(%s): %w%s", strings.Join(args[1:], " "), err, eal.log.tail())
	}
	eal.dir = C.GoString(C.rte_eal_get_runtime_dir())
	removeOldRuntimeDirs(eal.dir)
	eal.started = true
	return nil
}

// initEAL runs rte_eal_init on a locked thread, because it pins its thread, and restores the affinity.
func initEAL(args []string) error {
	argv := make([]*C.char, len(args)+1)
	for i, a := range args {
		argv[i] = C.CString(a) // getopt reorders the array and keeps pointers: never freed
	}
	c := (**C.char)(C.malloc(C.size_t(len(argv)) * C.size_t(unsafe.Sizeof(argv[0]))))
	copy(unsafe.Slice(c, len(argv)), argv)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.CPUSet
	affinity := unix.SchedGetaffinity(0, &set)
	ret := C.rte_eal_init(C.int(len(args)), c)
	e := C.urdma_errno()
	if affinity == nil {
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("restoring the thread's affinity: %w", err)
		}
	}
	if ret < 0 {
		return fmt.Errorf("%s", C.GoString(C.urdma_errno_text(e)))
	}
	return nil
}

// Cleanup ends the EAL at the end of the process, after all ports are closed. Without an EAL it does nothing.
func Cleanup() error {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	if !eal.started || eal.ended {
		return nil
	}
	eal.ended = true
	defer removeRuntimeDir(eal.dir)
	if eal.kept.Load() {
		return nil // it would close every device
	}
	ret := C.rte_eal_cleanup()
	if ret != 0 {
		return fmt.Errorf("dpdk: rte_eal_cleanup: %s", C.GoString(C.urdma_errno_text(-ret)))
	}
	return nil
}

// removeRuntimeDir removes the directory that the EAL created; only one with this process's own prefix.
func removeRuntimeDir(dir string) {
	if strings.HasSuffix(dir, fmt.Sprintf("/urdmad-%d", os.Getpid())) {
		os.RemoveAll(dir)
	}
}

// removeOldRuntimeDirs removes the directories of daemons that were killed. All of them are empty, because
// nothing is shared through files; those of running daemons are no longer needed either.
func removeOldRuntimeDirs(dir string) {
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "urdmad-*"))
	for _, d := range old {
		if d != dir {
			os.Remove(d)
		}
	}
}

// RegisterThread registers the calling thread with the EAL, so that buffer pools have a cache for it. The
// goroutine must be locked to its thread. It does nothing if no EAL runs.
func RegisterThread() error {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	if !eal.started || eal.ended {
		return nil
	}
	if ret := C.rte_thread_register(); ret != 0 {
		return fmt.Errorf("dpdk: rte_thread_register: %s", C.GoString(C.urdma_errno_text(C.urdma_errno())))
	}
	return nil
}

// UnregisterThread undoes RegisterThread, on the same thread.
func UnregisterThread() {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	if eal.started && !eal.ended {
		C.rte_thread_unregister()
	}
}
