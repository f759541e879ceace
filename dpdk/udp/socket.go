package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

// Buffers that we ask for; the kernel grants what net.core.rmem_max and wmem_max
// allow. The receive buffer bounds the window that peers are offered, and so how much
// is under way on a long path: a machine that is set up for such paths allows more
// than the usual 4 MiB or less.
const (
	sendBuffer    = 4 << 20
	receiveBuffer = 128 << 20
)

// openAll makes the port's sockets; scope is that of a link-local address. Where the
// kernel does not share datagrams out among several, there is one.
func openAll(o *Options, scope uint32) (fds []int, err error) {
	fd, err := open(o.Address, scope, false) // nobody else has the address
	if err != nil {
		return nil, err
	}
	fds = []int{fd}
	if o.Sockets < 2 {
		return fds, nil
	}
	if fds, err = addSockets(fds, o, scope); err != nil {
		o.Log.Warn("one socket for all workers", "port", o.Name, "error", err)
		for _, fd := range fds[1:] {
			_ = unix.Close(fd)
		}
		fds = fds[:1]
	}
	return fds, nil
}

// addSockets opens the others of a group that share their datagrams.
func addSockets(fds []int, o *Options, scope uint32) ([]int, error) {
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return fds, fmt.Errorf("SO_REUSEPORT: %w", err)
	}
	name, err := unix.Getsockname(fds[0])
	if err != nil {
		return fds, fmt.Errorf("getsockname: %w", err)
	}
	at := netip.AddrPortFrom(o.Address.Addr(), portOf(name))
	for len(fds) < o.Sockets {
		fd, err := open(at, scope, true)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	program := unix.SockFprog{Len: uint16(len(o.Filter)), Filter: &o.Filter[0]}
	if err := unix.SetsockoptSockFprog(fds[0], unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &program); err != nil {
		return fds, fmt.Errorf("SO_ATTACH_REUSEPORT_CBPF: %w", err)
	}
	return fds, nil
}

func portOf(a unix.Sockaddr) uint16 {
	if six, ok := a.(*unix.SockaddrInet6); ok {
		return uint16(six.Port)
	}
	return uint16(a.(*unix.SockaddrInet4).Port)
}

// open makes one socket; reuse: it joins others that have its address.
func open(a netip.AddrPort, scope uint32, reuse bool) (int, error) {
	fd, err := unix.Socket(family(a.Addr()), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return -1, fmt.Errorf("UDP socket: %w", err)
	}
	if reuse {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		err = prepare(fd, a, scope)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// prepare sets what must hold, then what helps, and binds.
func prepare(fd int, a netip.AddrPort, scope uint32) error {
	// Don't-fragment, but for datagrams that are longer than what the kernel knows
	// of the path, which it fragments: a connection keeps its segments' size for
	// life.
	if err := setFragments(fd, a.Addr().Is4(), unix.IP_PMTUDISC_WANT); err != nil {
		return fmt.Errorf("don't-fragment on the UDP socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if a.Addr().Is6() {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1) // another port may have IPv4's
	}
	if err := unix.Bind(fd, sockaddr(a, scope)); err != nil {
		return fmt.Errorf("UDP socket at %s: %w", a, err)
	}
	return nil
}

// capable is ECT(0), of the two bits of a traffic class that are for congestion (RFC 3168
// section 5).
const capable = 2

// markCongestion has datagrams carry marks of congestion. Where the kernel can't, nobody
// marks them.
func markCongestion(fd int, v4 bool) {
	level, class, receive := unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_RECVTCLASS
	if v4 {
		level, class, receive = unix.IPPROTO_IP, unix.IP_TOS, unix.IP_RECVTOS
	}
	if unix.SetsockoptInt(fd, level, receive, 1) == nil {
		_ = unix.SetsockoptInt(fd, level, class, capable)
	}
}

// setFragments says what the kernel does about fragments (ip(7)); both families
// number the values alike.
func setFragments(fd int, v4 bool, value int) error {
	if v4 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, value)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, value)
}

// fragments has the socket send what comes next as a packet's flags say. Fragments of
// IPv6 are as short as every path takes: where they are wanted (Info.FragmentFrom) the
// kernel believes that this path takes more.
func (q *queue) fragments(how port.Flags) {
	if q.tx.how == how {
		return
	}
	value := unix.IP_PMTUDISC_WANT
	switch how {
	case port.TxWhole: // don't-fragment, also where the kernel believes the path takes less
		value = unix.IP_PMTUDISC_PROBE
	case port.TxFragment:
		value = unix.IP_PMTUDISC_DONT
	}
	_ = setFragments(q.own.fd, q.v4, value) // it could be set when the socket was made
	if !q.v4 && how == port.TxFragment {
		_ = unix.SetsockoptInt(q.own.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, minMTU6) // fails nowhere with this value
	} else if !q.v4 && q.tx.how == port.TxFragment {
		_ = unix.SetsockoptInt(q.own.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, 0) // the path's again
	}
	q.tx.how = how
}

func sockaddr(a netip.AddrPort, scope uint32) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope}
}

// receiveWindow is how many packets of a size the socket's receive buffer holds.
// The kernel counts what their memory takes: the next power of two, and what
// describes it.
func receiveWindow(fd, mtu int) int {
	granted, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		granted = 1 << 17
	}
	memory := 512
	for size := 512; ; size *= 2 {
		if size >= mtu {
			return max(1, granted/(memory+size))
		}
	}
}

// sockaddrLen is enough for an address of either family.
const sockaddrLen = unix.SizeofSockaddrInet6

// putSockaddr writes a peer's address as the kernel has it (ip(7), ipv6(7)) and
// returns its length. A link-local one is on the socket's own link, scope.
func putSockaddr(b *[sockaddrLen]byte, v4 bool, scope uint32, p *port.Peer) uint32 {
	binary.BigEndian.PutUint16(b[2:], p.Port)
	if v4 {
		binary.NativeEndian.PutUint16(b[:], unix.AF_INET)
		binary.BigEndian.PutUint32(b[4:], uint32(p.Low))
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(b[:], unix.AF_INET6)
	binary.BigEndian.PutUint64(b[8:], p.High)
	binary.BigEndian.PutUint64(b[16:], p.Low)
	binary.NativeEndian.PutUint32(b[24:], scope)
	return unix.SizeofSockaddrInet6
}

// peerOf reads an address that the kernel wrote.
func peerOf(b *[sockaddrLen]byte) (p port.Peer) {
	p.Port = binary.BigEndian.Uint16(b[2:])
	if binary.NativeEndian.Uint16(b[:]) == unix.AF_INET {
		p.Low = 0xffff<<32 | uint64(binary.BigEndian.Uint32(b[4:]))
		return p
	}
	p.High, p.Low = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	return p
}
