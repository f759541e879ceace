package worker

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// bell wakes a sleeping worker, from inside the process or by kick sockets.
//
// Wake stores rung and then loads asleep; the worker stores asleep and then loads rung (both sequentially
// consistent in Go), so that at least one of the two sees the other's store. So no wake-up is lost, and
// Wake needs no system call while the worker is awake.
type bell struct {
	rung   atomic.Bool
	asleep atomic.Bool
	event  int // eventfd
	kicks  int // epoll of the kick sockets
	fds    []unix.PollFd
	ready  []unix.EpollEvent
	drain  [256]byte
	mu     sync.Mutex // held to use event from another goroutine, and to close it
	closed bool
}

func newBell() (*bell, error) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("worker: eventfd: %w", err)
	}
	kicks, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		_ = unix.Close(event)
		return nil, fmt.Errorf("worker: epoll: %w", err)
	}
	return &bell{event: event, kicks: kicks, fds: make([]unix.PollFd, 0, 16), ready: make([]unix.EpollEvent, 64)}, nil
}

func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	_ = unix.Close(b.event)
	_ = unix.Close(b.kicks)
}

func (b *bell) wake() {
	b.rung.Store(true)
	if !b.asleep.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(b.event, one[:]) // fails if the counter is full, which also wakes
	}
}

// fallAsleep announces the sleep; false means that the bell was rung.
func (b *bell) fallAsleep() bool {
	b.asleep.Store(true)
	if b.rung.Swap(false) {
		b.asleep.Store(false)
		return false
	}
	return true
}

// wait blocks until a wake-up, a kick, an event of fds, or the end of length. hold asks to keep the P if
// that is allowed. It reports whether something other than time ended the sleep.
func (b *bell) wait(fds []int, length Time, hold bool) (woken bool) {
	b.fds = append(b.fds[:0], unix.PollFd{Fd: int32(b.event), Events: unix.POLLIN},
		unix.PollFd{Fd: int32(b.kicks), Events: unix.POLLIN})
	for _, fd := range fds {
		b.fds = append(b.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	timeout := unix.NsecToTimespec(max(0, int64(length)))
	n, err := b.ppoll(&timeout, hold)
	b.asleep.Store(false)
	b.rung.Store(false)
	if err != nil || n == 0 {
		return err != nil
	}
	if b.fds[0].Revents != 0 {
		_, _ = unix.Read(b.event, b.drain[:8])
	}
	if b.fds[1].Revents != 0 {
		b.drainKicks()
	}
	return true
}

// ppoll sleeps. The form of the call that releases the P is always allowed, but afterwards the thread must
// acquire a P again: 58 µs to the first message after idling instead of 26 µs, and more processor time. If
// PrepareRuntime reserved a P for each worker, the P is kept. The garbage collector doesn't wait for the
// worker then either: the runtime preempts a thread by a signal, which it repeats every 100 µs, and ppoll,
// unlike read, ends at a signal. EINTR counts as a wake-up.
func (b *bell) ppoll(timeout *unix.Timespec, hold bool) (int, error) {
	if hold && reserved.Load() {
		return ppollHolding(b.fds, timeout)
	}
	return unix.Ppoll(b.fds, timeout, nil)
}

// drainKicks reads the kick sockets that are ready. A socket whose client has closed it is removed from the
// set, or it would keep the worker awake for ever. So is a socket that brings descriptors: their last close can take
// for ever (FUSE, SO_LINGER), so they stay there until the session closes the socket.
func (b *bell) drainKicks() {
	n, _ := unix.EpollWait(b.kicks, b.ready, 0)
	for i := range max(n, 0) {
		fd := int(b.ready[i].Fd)
		got, _, flags, _, err := unix.Recvmsg(fd, b.drain[:], nil, unix.MSG_DONTWAIT|unix.MSG_PEEK)
		gone := got == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
		switch {
		case gone, flags&unix.MSG_CTRUNC != 0:
			_ = b.unwatch(fd)
		case got > 0:
			_, _, _ = unix.Recvfrom(fd, b.drain[:got], unix.MSG_DONTWAIT)
		}
	}
}

func (b *bell) watch(fd int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrStopped
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if err := unix.EpollCtl(b.kicks, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("worker: watching kick socket %d: %w", fd, err)
	}
	return nil
}

func (b *bell) unwatch(fd int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ErrStopped
	}
	return unix.EpollCtl(b.kicks, unix.EPOLL_CTL_DEL, fd, nil)
}
