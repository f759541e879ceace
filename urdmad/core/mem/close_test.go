package mem

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFilesCloseWithoutLock: the worker, which may want to unmap, does not wait until the pages of a client's files
// are free.
func TestFilesCloseWithoutLock(t *testing.T) {
	fd, err := unix.MemfdCreate("memory", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	s := NewSpace(nil)
	if err := s.AddFile(1, os.NewFile(uintptr(fd), "memory")); err != nil {
		t.Fatal(err)
	}
	files := s.end()
	if len(files) != 1 || !s.mu.TryLock() {
		t.Fatalf("%d files are to be closed", len(files))
	}
	s.mu.Unlock()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Errorf("closed already: %v", err)
		}
	}
	s.Close() // again
}
