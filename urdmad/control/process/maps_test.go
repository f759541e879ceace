package process

import (
	"errors"
	"math"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownMappings are those of the test's process; the test is skipped if the kernel does not answer.
func ownMappings(t *testing.T) *Mappings {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckMaps(f, os.Getpid(), os.Getuid()); err != nil {
		t.Fatal(err)
	}
	m, err := NewMappings(f)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestMappings: an access is allowed where the process itself could do it.
func TestMappings(t *testing.T) {
	const page = 4096
	m := ownMappings(t)
	at, err := unix.MmapPtr(-1, 0, nil, 4*page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	addr := uint64(uintptr(at))
	allows := func(offset uint64, n int, write, want bool) {
		t.Helper()
		if err := m.Allows(addr+offset, n, write); (err == nil) != want || err != nil && !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%d bytes at %d, write %v: %v, expected allowed: %v", n, offset, write, err, want)
		}
	}
	allows(0, 4*page, false, true)
	allows(0, 0, true, true)
	allows(5, 1, true, false)
	b := bytesAt(at, 4*page)
	if err := errors.Join(unix.Mprotect(b[page:2*page], unix.PROT_READ|unix.PROT_WRITE),
		unix.Mprotect(b[3*page:], unix.PROT_NONE)); err != nil {
		t.Fatal(err)
	}
	allows(page, page, true, true)
	allows(page-1, 2, true, false)
	allows(2*page-1, 2, true, false)
	allows(0, 3*page, false, true)
	allows(0, 3*page+1, false, false)
	if err := unix.MunmapPtr(at, 4*page); err != nil {
		t.Fatal(err)
	}
	allows(0, 1, false, false)
	if m.Allows(0, 1, false) == nil || m.Allows(math.MaxUint64-1, 1, true) == nil {
		t.Error("memory at both ends of the addresses is allowed")
	}
	if n := testing.AllocsPerRun(10, func() { _ = m.Allows(uint64(uintptr(at)), 0, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := m.Close(); err != nil || m.Allows(addr, 1, false) == nil {
		t.Errorf("after Close (%v) memory is allowed", err)
	}
}

// TestOnlyMaps: no other file is asked.
func TestOnlyMaps(t *testing.T) {
	for _, path := range []string{"/proc/self/mem", "/proc/self/smaps", "/proc/1/maps", "/dev/null"} {
		f, err := os.Open(path)
		if err != nil {
			t.Logf("%s can't be opened here: %v", path, err)
			continue
		}
		if CheckMaps(f, os.Getpid(), os.Getuid()) == nil {
			t.Errorf("%s is taken", path)
		}
		f.Close()
	}
}
