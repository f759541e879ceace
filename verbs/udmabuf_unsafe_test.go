package verbs_test

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udmabuf makes a dma-buf of a sealed memfd (linux/udmabuf.h).
func udmabuf(t *testing.T, memory *os.File) *os.File {
	const create, closeOnExec = 0x40187542, 1 // _IOW('u', 0x42, struct udmabuf_create), UDMABUF_FLAGS_CLOEXEC
	device, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer device.Close()
	request := struct {
		memfd, flags uint32
		offset, size uint64
	}{uint32(memory.Fd()), closeOnExec, 0, dmabufBytes}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, device.Fd(), create, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		t.Fatal(errno)
	}
	return os.NewFile(fd, "udmabuf")
}
