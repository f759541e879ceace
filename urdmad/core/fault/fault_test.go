package fault_test

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/fault"
)

// clientMemory is a file of the given pages as a client would share it.
func clientMemory(t testing.TB, pages int) (fd int, memory []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("client", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	size := pages * unix.Getpagesize()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Munmap(memory)
		_ = unix.Close(fd)
	})
	return fd, memory
}

func TestCatchesTruncation(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	page := unix.Getpagesize()
	fd, memory := clientMemory(t, 4)
	source := make([]byte, 2*page)
	source[0] = 1
	if _, faulted := fault.Guard(func() { copy(memory[page:], source) }, nil); faulted {
		t.Fatal("a copy into whole memory faulted")
	}
	if err := unix.Ftruncate(fd, int64(2*page)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		addr, faulted := fault.Guard(func() { copy(memory[page:], source) }, nil)
		first := addressOf(memory) + uintptr(2*page)
		if !faulted || addr < first || addr >= first+uintptr(page) {
			t.Fatalf("faulted=%v at %#x, want a fault in the page at %#x", faulted, addr, first)
		}
	}
	if memory[page] != 1 {
		t.Error("what was copied before the fault is gone")
	}
}

func TestSurvivesPunchAndUnmap(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	page := unix.Getpagesize()
	fd, memory := clientMemory(t, 2)
	memory[page] = 7
	err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(page), int64(page))
	if err != nil {
		t.Fatal(err)
	}
	var read byte
	if _, faulted := fault.Guard(func() { read = memory[page] }, nil); faulted || read != 0 {
		t.Errorf("a punched page: faulted=%v, read %d; want zeros and no fault", faulted, read)
	}
	if err := unix.Mprotect(memory, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if addr, faulted := fault.Guard(func() { memory[0] = 1 }, nil); !faulted || addr != addressOf(memory) {
		t.Errorf("SIGSEGV: faulted=%v at %#x, want %#x", faulted, addr, addressOf(memory))
	}
}

func TestLetsBugsThrough(t *testing.T) {
	index, bug := 3, errors.New("bug")
	for name, wrong := range map[string]func(){
		"nil":   func() { var p *int; *p = 1 },
		"index": func() { _ = make([]byte, 2)[index] },
		"panic": func() { panic(bug) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: swallowed", name)
				}
			}()
			fault.Guard(wrong, nil)
		}()
	}
}

func BenchmarkGuard(b *testing.B) {
	n := 0
	for b.Loop() {
		fault.Guard(func() { n++ }, nil)
	}
}

func BenchmarkGuardedFault(b *testing.B) {
	runtime.LockOSThread()
	fd, memory := clientMemory(b, 1)
	if err := unix.Ftruncate(fd, 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		fault.Guard(func() { memory[0] = 1 }, nil)
	}
}
