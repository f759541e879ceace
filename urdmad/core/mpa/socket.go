package mpa

import (
	"net/netip"

	"urdma/urdmad/core/clock"

	"golang.org/x/sys/unix"
)

// sockaddr returns an address in the kernel's form. scope is the interface of a link-local address; it is
// ignored for other addresses.
func sockaddr(a netip.AddrPort, scope uint32) (int, unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope}
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

func socket(local netip.AddrPort, scope uint32) (fd int, err error) {
	family, sa := sockaddr(local, scope)
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // old connections then don't block the port
	if err := unix.Bind(fd, sa); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func listen(at netip.AddrPort, scope uint32) (int, error) {
	fd, err := socket(at, scope)
	if err != nil {
		return -1, err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connect begins the TCP handshake.
func connect(local, peer netip.AddrPort, scope uint32, death clock.Time) (int, error) {
	fd, err := socket(local, scope)
	if err != nil {
		return -1, err
	}
	setOptions(fd, death)
	_, sa := sockaddr(peer, scope)
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// setOptions makes TCP's keepalives end the connection to an idle peer that is silent for death, in whole
// seconds. silence.go handles peers to which data are sent.
func setOptions(fd int, death clock.Time) {
	idle := max(1, int(death/(2*clock.Second))) // seconds; half of death is idle time, half is probing
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, min(idle, 32767)},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, min(idle, 127)},
	} {
		_ = unix.SetsockoptInt(fd, o.level, o.name, o.value) // without these options a dead peer is detected later
	}
}
