package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

// Requested socket buffers; the kernel grants what net.core.rmem_max and wmem_max allow. The receive buffer
// limits the window offered to peers, and so the data in flight on a long path: machines for such paths
// should allow more than the usual 4 MiB or less.
const (
	sendBuffer    = 4 << 20
	receiveBuffer = 128 << 20
)

// openAll creates the port's sockets; scope is for link-local addresses. If the kernel can't distribute
// datagrams among several sockets, there is only one.
func openAll(o *Options, scope uint32) (fds []int, err error) {
	fd, err := open(o.Address, scope, false) // fails if another socket has the address
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

// addSockets opens the other sockets of a group among which the kernel distributes datagrams.
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

// open creates one socket; reuse: it joins others with the same address.
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

// prepare sets required options, then optional ones, and binds the socket.
func prepare(fd int, a netip.AddrPort, scope uint32) error {
	// Sets don't-fragment, except for datagrams longer than the path MTU that the kernel knows, which it
	// fragments: a connection never changes the size of its segments.
	if err := setFragments(fd, a.Addr().Is4(), unix.IP_PMTUDISC_WANT); err != nil {
		return fmt.Errorf("don't-fragment on the UDP socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if a.Addr().Is6() {
		// another port may use the same port number for IPv4
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err := unix.Bind(fd, sockaddr(a, scope)); err != nil {
		return fmt.Errorf("UDP socket at %s: %w", a, err)
	}
	return nil
}

// capable is ECT(0), a value of the two congestion bits in a traffic class (RFC 3168 section 5).
const capable = 2

// markCongestion makes datagrams ECN-capable. If the kernel can't do that, no congestion is marked.
func markCongestion(fd int, v4 bool) {
	level, class, receive := unix.IPPROTO_IPV6, unix.IPV6_TCLASS, unix.IPV6_RECVTCLASS
	if v4 {
		level, class, receive = unix.IPPROTO_IP, unix.IP_TOS, unix.IP_RECVTOS
	}
	if unix.SetsockoptInt(fd, level, receive, 1) == nil {
		_ = unix.SetsockoptInt(fd, level, class, capable)
	}
}

// setFragments sets how the kernel treats fragmentation (ip(7)); both families have the same values.
func setFragments(fd int, v4 bool, value int) error {
	if v4 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, value)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, value)
}

// fragments sets the socket's treatment of fragmentation for the next packets. IPv6 fragments are as short as
// every path allows: if they are wanted (Info.FragmentFrom) the kernel is told a larger MTU for this path.
func (q *queue) fragments(how port.Flags) {
	if q.tx.how == how {
		return
	}
	value := unix.IP_PMTUDISC_WANT
	switch how {
	case port.TxWhole: // don't-fragment, even if the kernel knows a smaller path MTU
		value = unix.IP_PMTUDISC_PROBE
	case port.TxFragment:
		value = unix.IP_PMTUDISC_DONT
	}
	_ = setFragments(q.own.fd, q.v4, value) // succeeds, because it succeeded when the socket was created
	if !q.v4 && how == port.TxFragment {
		_ = unix.SetsockoptInt(q.own.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, minMTU6) // never fails with this value
	} else if !q.v4 && q.tx.how == port.TxFragment {
		_ = unix.SetsockoptInt(q.own.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU, 0) // back to the path's own MTU
	}
	q.tx.how = how
}

func sockaddr(a netip.AddrPort, scope uint32) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: scope}
}

// receiveWindow returns how many packets of a size fit the socket's receive buffer. The kernel counts their
// memory: the next power of two, and a descriptor.
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

// putSockaddr writes a peer's address in the kernel's format (ip(7), ipv6(7)) and returns its length. scope
// is the interface index of the socket's link, which a link-local address needs.
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

// peerOf reads an address written by the kernel.
func peerOf(b *[sockaddrLen]byte) (p port.Peer) {
	p.Port = binary.BigEndian.Uint16(b[2:])
	if binary.NativeEndian.Uint16(b[:]) == unix.AF_INET {
		p.Low = 0xffff<<32 | uint64(binary.BigEndian.Uint32(b[4:]))
		return p
	}
	p.High, p.Low = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	return p
}
