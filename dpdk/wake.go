package dpdk

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// wake is how a sleeping worker is woken by frames on a DPDK queue:
//
//   - drivers with receive interrupts provide an fd for epoll (tap, virtio, most
//     hardware);
//   - af_packet and af_xdp have no interrupts in 22.11, but their socket is readable
//     while frames wait in its ring; no API returns the socket, so it is found among
//     our descriptors by its address family;
//   - others (ring, pcap, …) have nothing: fd is -1 and the worker uses timed
//     waits.
type wake struct {
	fd        int
	never     int  // an eventfd that is never readable, to wait for when the device no longer exists
	socket    bool // fd is a socket
	interrupt bool // the driver enables and disables it
	eventfd   bool // the fd must be read to become unreadable; others (tap's own file) must not be read
}

// packetSockets returns our descriptors that are AF_PACKET or AF_XDP sockets.
func packetSockets() map[int]bool {
	found := map[int]bool{}
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return found
	}
	for _, e := range dir {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err == nil && (domain == unix.AF_PACKET || domain == unix.AF_XDP) {
			found[fd] = true
		}
	}
	return found
}

// findWake chooses a queue's wake-up; before are the packet sockets that existed before it was opened.
func (p *ethPort) findWake(q *C.struct_urdma_queue, before map[int]bool) (w wake, err error) {
	w.fd = -1
	if w.never, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return w, fmt.Errorf("eventfd: %w", err)
	}
	if p.c.rx_interrupt != 0 {
		w.fd, w.interrupt = int(C.urdma_interrupt_fd(q)), true
		what, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(w.fd))
		w.eventfd = what == "anon_inode:[eventfd]"
		return w, nil
	}
	if strings.HasPrefix(p.info.Driver, "net_af_") {
		for fd := range packetSockets() {
			if !before[fd] {
				w.fd, w.socket = fd, true
			}
		}
	}
	return w, nil
}

// clearError clears the pending error of a socket, as reading it does.
func (w *wake) clearError() {
	if w.socket {
		_, _ = unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	}
}

// arm enables or disables the driver's interrupt, and drains its fd when disabling.
func (w *wake) arm(q *C.struct_urdma_queue, on bool) {
	if !w.interrupt {
		return
	}
	if on {
		C.urdma_interrupt(q, 1)
		return
	}
	C.urdma_interrupt(q, 0)
	if !w.eventfd {
		return
	}
	var poll = [1]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll[:], 0); err == nil && n == 1 {
		var b [8]byte
		unix.Read(w.fd, b[:])
	}
}

func (w *wake) close() {
	unix.Close(w.never)
	w.fd, w.never = -1, -1
}
