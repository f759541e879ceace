package udp

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// ability is the kernel's support for bursts of datagrams.
type ability struct {
	cut  bool // UDP_SEGMENT
	join bool // UDP_GRO
}

// probe tests this over the loopback interface, because some kernels (gVisor's) accept the options and ignore
// them.
func probe(v4 bool) (a ability) {
	at := netip.IPv6Loopback()
	if v4 {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	from, ok := probeSocket(at)
	if !ok {
		return a
	}
	defer unix.Close(from)
	to, ok := probeSocket(at)
	if !ok {
		return a
	}
	defer unix.Close(to)
	joins := unix.SetsockoptInt(to, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	name, err := unix.Getsockname(to)
	if err != nil {
		return a
	}
	var c controlBuffer
	if _, err := unix.SendmsgN(from, make([]byte, probeTotal), c[:c.putSegment(probeSize)], name, 0); err != nil {
		return a
	}
	return observe(to, joins)
}

const (
	probeSize  = 100 // bytes of a datagram
	probeTotal = 250 // two of these and a shorter one
	probeWait  = 200 * time.Millisecond
)

func probeSocket(at netip.Addr) (int, bool) {
	fd, err := unix.Socket(family(at), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return -1, false
	}
	if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(at, 0), 0)); err != nil {
		_ = unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// observe receives three datagrams that left in one send, and reports how they arrived.
func observe(fd int, joins bool) (a ability) {
	deadline := time.Now().Add(probeWait)
	for left := probeTotal; left > 0; {
		var c controlBuffer
		b := make([]byte, probeTotal)
		n, control, _, _, err := unix.Recvmsg(fd, b, c[:], 0)
		if err != nil && time.Now().Before(deadline) {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10)
			continue
		}
		if err != nil || n == 0 {
			return ability{}
		}
		segment, _, _ := c.parse(control)
		switch {
		case n > probeSize && segment != probeSize:
			return ability{} // sent as one datagram: the option was ignored
		case n > probeSize:
			a.join = joins
		}
		a.cut = true
		left -= n
	}
	return a
}
