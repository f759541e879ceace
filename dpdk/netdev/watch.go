package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Watch calls f with the interface's state, from a goroutine, once at the beginning and after each change
// that the kernel reports, until stop is called or the interface is gone. stop waits until f has returned.
func (i *Interface) Watch(f func(State)) (stop func(), err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("network interface %d: netlink socket: %w", i.index, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("network interface %d: netlink: %w", i.index, err)
	}
	news, done := os.NewFile(uintptr(fd), "netlink"), make(chan struct{})
	go func() {
		defer close(done)
		i.watch(news, f)
	}()
	return func() {
		news.Close()
		<-done
	}, nil
}

func (i *Interface) watch(news *os.File, f func(State)) {
	b := make([]byte, 1<<16)
	for {
		s, err := i.State()
		if err == nil {
			f(s)
		}
		if s.Gone || !i.await(news, b) {
			return
		}
	}
}

// await waits for a message about this interface; false means that Watch was stopped.
func (i *Interface) await(news *os.File, b []byte) bool {
	for {
		n, err := news.Read(b)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return true // messages were lost, perhaps one about this interface
		case err != nil:
			return false
		case i.concerns(b[:n]):
			return true
		}
	}
}

// concerns looks for this interface in the messages (rtnetlink(7): nlmsghdr, then ifinfomsg, whose index is
// at offset 4).
func (i *Interface) concerns(b []byte) bool {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return true // unreadable: ask for the state in any case
	}
	for _, m := range messages {
		isLink := m.Header.Type == unix.RTM_NEWLINK || m.Header.Type == unix.RTM_DELLINK
		if isLink && len(m.Data) >= unix.SizeofIfInfomsg && binary.NativeEndian.Uint32(m.Data[4:]) == i.index {
			return true
		}
	}
	return false
}
