package ancillary

import (
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is a descriptor that another process has sent. os.NewFile must not be called for it before the kind of the file
// is known: it would add a non-blocking one to the runtime's epoll set, whose lock the kernel holds until the file's
// owner has answered poll(2) (FUSE), and until then every socket of this process waits.
type File struct{ fd atomic.Int64 }

// NewFile takes ownership of a descriptor.
func NewFile(fd int) *File {
	f := &File{}
	f.fd.Store(int64(fd))
	return f
}

// Fd returns the descriptor, which stays the File's.
func (f *File) Fd() uintptr { return uintptr(f.fd.Load()) }

// Close closes it, which can take as long as its owner likes.
func (f *File) Close() error { return unix.Close(int(f.fd.Swap(-1))) }

// OS returns an os.File that takes over the descriptor; nil: the File is closed. The caller has checked that the kernel
// itself answers poll(2) for such a file.
func (f *File) OS(name string) *os.File { return os.NewFile(uintptr(f.fd.Swap(-1)), name) }
