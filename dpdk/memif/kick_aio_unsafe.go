package memif

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signaller adds to an eventfd without ever waiting, even if the peer has filled the eventfd's counter and
// made it blocking. write(2) can't do that, but kernel AIO can: a request whose aio_resfd is the eventfd
// signals it on completion from inside the kernel, which never blocks (io_submit(2), IOCB_FLAG_RESFD). The
// request is a poll of a pipe end that is always writable, so it completes while it is submitted.
//
// Only peers that pass real eventfds (net_memif, libmemif) need this; our own client passes sockets.
type signaller struct {
	mu     sync.Mutex // several queues may signal at the same time, while the peer sleeps
	ctx    uintptr
	always int // an fd that always polls writable
	cb     iocb
	list   [1]*iocb
	events [4]ioEvent
}

// iocb and ioEvent mirror struct iocb and struct io_event of linux/aio_abi.h,
// little-endian.
type iocb struct {
	_            uint64 // data, given back in the event
	_, _         uint32 // key, rw_flags
	opcode       uint16
	_            int16 // priority
	fd           uint32
	buf          uint64 // for IOCB_CMD_POLL: the events
	_, _, _      uint64 // nbytes, offset, reserved
	flags, resfd uint32
}

type ioEvent [4]uint64

const (
	iocbCmdPoll   = 5
	iocbFlagResfd = 1
	aioDepth      = 64
)

func newSignaller(eventfd int) (*signaller, error) {
	s := &signaller{always: -1}
	if _, _, e := unix.Syscall(unix.SYS_IO_SETUP, aioDepth, uintptr(unsafe.Pointer(&s.ctx)), 0); e != 0 {
		return nil, fmt.Errorf("memif: io_setup: %w", e)
	}
	// A private eventfd with a low counter always accepts a write.
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("memif: eventfd: %w", err)
	}
	s.always = fd
	s.cb = iocb{opcode: iocbCmdPoll, fd: uint32(fd), buf: unix.POLLOUT, flags: iocbFlagResfd, resfd: uint32(eventfd)}
	s.list[0] = &s.cb
	return s, nil
}

func (s *signaller) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 {
		n, _, _ := unix.Syscall(unix.SYS_IO_SUBMIT, s.ctx, 1, uintptr(unsafe.Pointer(&s.list[0])))
		s.reap()
		if int(n) == 1 {
			return
		}
	}
}

// reap empties the completion queue without waiting.
func (s *signaller) reap() {
	var zero unix.Timespec
	for {
		n, _, e := unix.Syscall6(unix.SYS_IO_GETEVENTS, s.ctx, 0, uintptr(len(s.events)),
			uintptr(unsafe.Pointer(&s.events[0])), uintptr(unsafe.Pointer(&zero)), 0)
		if e != 0 || int(n) < len(s.events) {
			return
		}
	}
}

func (s *signaller) close() {
	if s.ctx != 0 {
		unix.Syscall(unix.SYS_IO_DESTROY, s.ctx, 0, 0)
	}
	closeFD(s.always)
	s.ctx, s.always = 0, -1
}
