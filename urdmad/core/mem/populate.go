package mem

import (
	"errors"

	"golang.org/x/sys/unix"
)

// populateStep is how much is entered in one system call: a session that
// populates holds up others that map memory no longer than that.
const populateStep = 2 << 20

// Populate enters the pages of a mapping that exist into our page tables, so
// that the poll loop's first touch of each doesn't fault (2.7 µs where this was
// measured, 0.03 µs without). It takes time by size, so a session calls it, and
// only for what no other region of the view covers: that has been entered.
// Holes stay holes: the process that fills a page is charged for it, and that must not be urdmad.
// Kernels before 5.14 know no way; there the poll loop faults once a page.
func (s *Space) Populate(m Mapping) {
	if m.file == nil {
		return
	}
	p := populator{view: m.view, fd: int(m.file.Fd())}
	for _, all := range m.fresh {
		for at := all.from; at < all.to; at += populateStep {
			if err := p.populate(span{at, min(at+populateStep, all.to)}); err != nil {
				return
			}
		}
	}
}

// populator is a call of Populate.
type populator struct {
	view *view
	fd   int
}

func (p *populator) populate(s span) error {
	if p.present(s) {
		return p.enter(s)
	}
	for at := s.from; at < s.to; {
		data, err := unix.Seek(p.fd, int64(at), unix.SEEK_DATA)
		if err != nil || uint64(data) >= s.to {
			return nil //nolint:nilerr // ENXIO: holes up to the end
		}
		hole, err := unix.Seek(p.fd, data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if err := p.enter(span{uint64(data), min(uint64(hole), s.to)}); err != nil {
			return err
		}
		at = uint64(hole)
	}
	return nil
}

// present reports whether all pages are known to be in memory, as those of a client
// that has just registered them are. To look for a hole costs more: the kernel
// goes on looking behind the end. Before Linux 6.5 nothing is known.
func (p *populator) present(s span) bool {
	var found unix.Cachestat_t
	err := unix.Cachestat(uint(p.fd), &unix.CachestatRange{Off: s.from, Len: s.to - s.from}, &found, 0)
	return err == nil && found.Cache == (s.to-s.from)/pageSize
}

// enter enters pages that exist. They are entered for reading, which the kernel
// does sixteen at a time; what it enters of shared memory that is mapped for
// writing allows that at once.
func (p *populator) enter(s span) error {
	s = s.wholePages()
	err := unix.Madvise(p.view.bytes[s.from-p.view.start:s.to-p.view.start], unix.MADV_POPULATE_READ)
	if errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil // what could not be entered the poll loop meets
}

var pageSize = uint64(unix.Getpagesize())

// wholePages is the pages that s lies in.
func (s span) wholePages() span {
	return span{s.from &^ (pageSize - 1), (s.to + pageSize - 1) &^ (pageSize - 1)}
}
