package mem

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// faults returns the number of faults that fn causes on this thread.
func faults(t *testing.T, fn func()) int64 {
	t.Helper()
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &before); err != nil {
		t.Fatal(err)
	}
	fn()
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &after); err != nil {
		t.Fatal(err)
	}
	return after.Minflt + after.Majflt - before.Minflt - before.Majflt
}

// TestPopulate: existing pages of the client are touched without a fault; missing ones are not touched.
func TestPopulate(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const pages, first, present = 1024, 100, 512
	page := uint64(unix.Getpagesize())
	s := space(t, int64(pages*page))
	fd := int(s.files[1].Fd())
	if _, err := unix.Pwrite(fd, make([]byte, present*page), int64(first*page)); err != nil {
		t.Fatal(err) // written, as a client's pages are: pages that are only allocated count as holes
	}
	m, err := s.Map(1, page/2, pages*page-page)
	if err != nil {
		t.Fatal(err)
	}
	if unix.Madvise(m.view.bytes[first*page:][:page], unix.MADV_POPULATE_READ) != nil {
		t.Skip("needs MADV_POPULATE_READ, Linux 5.14")
	}
	s.Populate(m)
	if n := faults(t, func() {
		for i := uint64(first); i < first+present; i++ {
			m.Bytes[i*page]++
		}
	}); n > present/4 { // an emulator (test/arm64) has some faults of its own
		t.Errorf("%d faults in %d pages", n, present)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Blocks)*512 != present*page {
		t.Errorf("the file has %d bytes in memory, expected %d (%v)", st.Blocks*512, present*page, err)
	}
}

// TestPopulateNothing: a deleted file, a range without bytes and one with holes only cause no error.
func TestPopulateNothing(t *testing.T) {
	s := space(t, 1<<20)
	m, err := s.Map(1, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s.Populate(m)
	s.Populate(Mapping{})
	m, err = s.Map(1, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Populate(m)
}
