package mem

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page.
const hugePage = 2 << 20

// mapAligned maps [start, end) of a file, where start is a multiple of hugePage, at an address that is a
// multiple too: only then does the kernel map the file's huge pages as such.
func mapAligned(f *os.File, start, end uint64) ([]byte, error) {
	size := uintptr(end - start)
	room, err := unix.MmapPtr(-1, 0, nil, size+hugePage, unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	head := -uintptr(room) & (hugePage - 1)
	at := unsafe.Add(room, head)
	if _, err = unix.MmapPtr(int(f.Fd()), int64(start), at, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		_ = unix.MunmapPtr(room, size+hugePage)
		return nil, err
	}
	// These calls fail only if there are too many mappings; then the unused part only occupies address
	// space.
	if head > 0 {
		_ = unix.MunmapPtr(room, head)
	}
	_ = unix.MunmapPtr(unsafe.Add(at, size), hugePage-head)
	return unsafe.Slice((*byte)(at), size), nil
}

func unmapAligned(b []byte) {
	// It fails only for an address that is not mapped.
	_ = unix.MunmapPtr(unsafe.Pointer(&b[0]), uintptr(len(b)))
}
