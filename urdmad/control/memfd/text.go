package memfd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Text makes a read-only memfd with the given text, and returns its descriptor.
func Text(name string, text []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("memfd: %w", err)
	}
	for at := 0; at < len(text) && err == nil; {
		var n int
		n, err = unix.Pwrite(fd, text[at:], int64(at))
		at += n
	}
	if err == nil {
		seals := unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("memfd of %d bytes: %w", len(text), err)
	}
	return fd, nil
}
