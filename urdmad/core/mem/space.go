package mem

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Errors of sharing memory.
var (
	ErrNotSealed = errors.New("mem: file is not a memfd sealed against shrinking (F_SEAL_SHRINK)")
	ErrOtherFile = errors.New("mem: the descriptor is of another file than was meant")
	ErrNotShmem  = errors.New("mem: file is neither on tmpfs or hugetlbfs nor a dma-buf of udmabuf, or not open for reading and writing")
	ErrNoFile    = errors.New("mem: no such file handle")
	ErrRange     = errors.New("mem: range lies outside the file")
	ErrNoSelfMem = errors.New("mem: the client passed no /proc/self/mem, only shared memory can be registered")
)

// viewAlign is the granularity of mappings: registrations that are close together in a file share one
// mapping, of which Linux allows 65,530 per process.
const viewAlign = 64 << 20

// Budget bounds the number of mappings. A process that reaches vm.max_map_count can't grow its heap either.
type Budget interface {
	// Take is called before a mapping is made; an error forbids it.
	Take() error
	// Give is called after a mapping is removed, on any goroutine or the worker's thread.
	Give()
}

// Space is one client's memory as urdmad accesses it.
type Space struct {
	mu     sync.Mutex
	files  map[uint32]*sharedFile
	views  []*view
	idle   *view // a member of views: the last one that became unused, kept for reuse
	closed bool
	budget Budget // nil: limited only by the kernel

	direct   bool        // see SetDirect
	left     atomic.Bool // see Leave
	fallback *fallback   // nil until a region needs it
	selfMem  *os.File    // the client's /proc/self/mem, or nil
}

// sharedFile is a client's memfd. It can't be truncated.
type sharedFile struct {
	*os.File
	size uint64 // at the last look
}

// FileID identifies a file of the system, as long as it is open or mapped.
type FileID struct {
	Major, Minor uint32 // of its device
	Inode        uint64
}

// fileKey identifies a client's file.
type fileKey struct {
	handle uint32 // from AddFile; 0: a file from MapFile
	FileID
}

// view is a mapped part of a client's file.
type view struct {
	file       fileKey
	start, end uint64 // offsets in the file
	bytes      []byte
	refs       int
	covered    coverage // whole pages, covered by mappings in use
}

// Mapping is a mapped range of a client's file.
type Mapping struct {
	Bytes []byte
	view  *view
	pages span     // offsets in the file
	fresh []span   // parts of pages that no other mapping in use covered
	file  *os.File // until it is populated
}

// NewSpace returns a Space and takes ownership of selfMem, which may be nil.
func NewSpace(selfMem *os.File) *Space {
	return &Space{files: make(map[uint32]*sharedFile), selfMem: selfMem}
}

// SetBudget sets the budget of a Space that has no mappings yet.
func (s *Space) SetBudget(b Budget) { s.budget = b }

// AddFile registers a memfd under a handle that the caller chose. It takes ownership of the file, even if
// it returns an error.
func (s *Space) AddFile(handle uint32, f *os.File) error {
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		f.Close()
		return ErrNotSealed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[handle] = &sharedFile{File: f}
	return nil
}

// Map maps n bytes at offset of a file. They stay mapped until the region made of them is removed and
// released.
func (s *Space) Map(handle uint32, offset, n uint64) (Mapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[handle]
	if f == nil {
		return Mapping{}, ErrNoFile
	}
	if ok, err := f.contains(offset, n); err != nil {
		return Mapping{}, fmt.Errorf("mem: %w", err)
	} else if !ok {
		return Mapping{}, ErrRange
	}
	return s.mapFile(fileKey{handle: handle}, f.File, math.MaxUint64, offset, n)
}

// CheckShmem returns an error unless MapFile accepts the client's file. A page fault in a file on tmpfs
// waits for no other process, unlike one on FUSE or a network file system, and for no disk except swap. The
// same holds for huge pages, and for a dma-buf that udmabuf made of such a file. A client can't open a file
// for writing without the right to write it. The function makes no call that such a file system could
// delay.
func CheckShmem(f interface{ Fd() uintptr }) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return ErrNotShmem
	}
	if exporter, ok := exporterOf(f); ok {
		if exporter != "udmabuf" {
			return fmt.Errorf("mem: the dma-buf's exporter is %q, expected udmabuf: %w", exporter, ErrNotShmem)
		}
		return nil
	}
	var fs unix.Statfs_t
	if _, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil { // EINVAL: neither on tmpfs nor on hugetlbfs
		return ErrNotShmem
	}
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || fs.Type != unix.TMPFS_MAGIC && fs.Type != unix.HUGETLBFS_MAGIC {
		return ErrNotShmem
	}
	return nil
}

// exporterOf returns the driver that made a dma-buf. The kernel writes it before the buffer's name, which
// may have any content.
func exporterOf(f interface{ Fd() uintptr }) (string, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()))
	if err != nil {
		return "", false
	}
	return exporterIn(string(text))
}

func exporterIn(info string) (string, bool) {
	for line := range strings.Lines(info) {
		if name, ok := strings.CutPrefix(line, "exp_name:\t"); ok {
			return strings.TrimSuffix(name, "\n"), true
		}
	}
	return "", false
}

// MapFile maps n bytes at offset of a file that CheckShmem accepts. The file may be closed once the mapping
// is populated. Unlike a file from AddFile it can be truncated; then an access beyond its end faults
// (package fault).
func (s *Space) MapFile(f *os.File, id FileID, offset, n uint64) (Mapping, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Mapping{}, fmt.Errorf("mem: %w", err)
	}
	if id != (FileID{unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino}) {
		return Mapping{}, ErrOtherFile
	}
	if offset+n <= offset || offset+n > uint64(st.Size) {
		return Mapping{}, ErrRange
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mapFile(fileKey{FileID: id}, f, span{0, uint64(st.Size)}.wholePages().to, offset, n)
}

func (s *Space) mapFile(key fileKey, f *os.File, limit, offset, n uint64) (Mapping, error) {
	w, err := s.view(key, f, limit, offset, n)
	if err != nil {
		return Mapping{}, err
	}
	m := s.use(w, offset, n)
	m.file = f
	return m, nil
}

// contains reports whether n bytes (at least one) at offset are in the file.
func (f *sharedFile) contains(offset, n uint64) (bool, error) {
	if offset+n <= offset {
		return false, nil
	}
	if offset+n > f.size { // the file may have grown
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return false, err
		}
		f.size = uint64(st.Size)
	}
	return offset+n <= f.size, nil
}

// use makes a mapping of a view that contains the range.
func (s *Space) use(w *view, offset, n uint64) Mapping {
	w.refs++
	if s.idle == w {
		s.idle = nil
	}
	at := offset - w.start
	m := Mapping{Bytes: w.bytes[at : at+n : at+n], view: w, pages: span{offset, offset + n}.wholePages()}
	w.covered.add(m.pages, func(s span) { m.fresh = append(m.fresh, s) })
	return m
}

// Unmap releases a mapping of which no region was made.
func (s *Space) Unmap(m Mapping) {
	if m.view != nil {
		s.unmap(m)
	}
}

// view maps the surroundings of the range, but nothing from limit on: mapping more would extend a file on
// hugetlbfs, and fails for a dma-buf.
func (s *Space) view(file fileKey, f *os.File, limit, offset, n uint64) (*view, error) {
	for _, w := range s.views {
		if w.file == file && w.start <= offset && offset+n <= w.end {
			return w, nil
		}
	}
	if err := s.take(); err != nil {
		return nil, err
	}
	start := offset &^ (viewAlign - 1)
	end := min((offset+n+viewAlign-1)&^(viewAlign-1), limit)
	b, err := mapAligned(f, start, end)
	if err != nil {
		s.giveBack()
		return nil, fmt.Errorf("mem: mapping %d bytes of client memory: %w", end-start, err)
	}
	w := &view{file: file, start: start, end: end, bytes: b}
	s.views = append(s.views, w)
	return w, nil
}

func (s *Space) unmap(m Mapping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := m.view
	w.refs--
	w.covered.drop(m.pages)
	if w.refs > 0 {
		return
	}
	if s.closed || w.end-w.start > viewAlign || w.file.handle == 0 { // views of a program's file are not kept unused
		s.drop(w)
		return
	}
	s.dropIdle()
	s.idle = w
}

// dropIdle unmaps the unused view that is kept.
func (s *Space) dropIdle() {
	if w := s.idle; w != nil {
		s.idle = nil
		s.drop(w)
	}
}

// drop unmaps an unused view.
func (s *Space) drop(w *view) {
	for i, x := range s.views {
		if x == w {
			s.views = append(s.views[:i], s.views[i+1:]...)
			break
		}
	}
	go unmapAligned(w.bytes) // the poll loop may be the caller, and unmapping gigabytes takes milliseconds
	s.giveBack()
}

// take asks the budget for one more view. If it refuses, take drops the unused view instead.
func (s *Space) take() error {
	if s.budget == nil {
		return nil
	}
	err := s.budget.Take()
	if err != nil && s.idle != nil {
		s.dropIdle()
		err = s.budget.Take()
	}
	return err
}

func (s *Space) giveBack() {
	if s.budget != nil {
		s.budget.Give()
	}
}

// Close ends the fallback goroutine and closes the files. A mapping that a region still uses is unmapped when
// the region is released.
func (s *Space) Close() {
	for _, f := range s.end() {
		f.Close()
	}
}

// end returns the files, which are to be closed without the lock: freeing a large one takes
// seconds, and the worker may want to unmap.
func (s *Space) end() (files []*os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.dropIdle()
	for _, f := range s.files {
		files = append(files, f.File)
	}
	s.files = map[uint32]*sharedFile{}
	if s.fallback != nil {
		s.fallback.stop()
	}
	if s.selfMem != nil {
		files = append(files, s.selfMem)
	}
	return files
}
