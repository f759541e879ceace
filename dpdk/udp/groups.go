package udp

import (
	"errors"
	"fmt"
	"net/netip"

	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

// This file has the multicast groups. A socket bound to an address of the host receives nothing that is sent
// to a group. So each group has a socket of its own, bound to the group and used only for receiving; the
// kernel joins the group and answers queries.

// maxGroups limits the groups, and so the descriptors that programs can make urdmad use.
const maxGroups = 64

// groupHops is the time to live of packets to a group, the same as of all other packets.
const groupHops = 64

var errGroups = fmt.Errorf("a port that is a UDP socket takes at most %d groups: %w", maxGroups, unix.ENOMEM)

type groups struct {
	address netip.AddrPort // the port's address
	index   uint32         // index of the port's network interface
	ecn     bool
	list    []source // by group number minus 1; fd is negative if the group was left
	joined  int
	turn    int // index in list to receive from next; len(list): the port's own socket
	watch   int // epoll instance with the port's and the groups' sockets; negative: not created yet
	own     int // the port's socket
}

func (g *groups) init(address netip.AddrPort, index uint32, ecn bool, own int) {
	*g = groups{address: address, index: index, ecn: ecn, own: own, watch: -1}
	// Packets to groups are sent on this interface. If this fails, such sends fail, too.
	if address.Addr().Is4() {
		_ = unix.SetsockoptInt(own, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, groupHops)
		_ = unix.SetsockoptIPMreqn(own, unix.IPPROTO_IP, unix.IP_MULTICAST_IF,
			&unix.IPMreqn{Address: address.Addr().As4(), Ifindex: int32(index)})
		return
	}
	_ = unix.SetsockoptInt(own, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, groupHops)
	_ = unix.SetsockoptInt(own, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, int(index))
}

// Join implements port.Grouper. The kernel joins at once, or waits for another configuration change in
// progress.
func (p *Port) Join(queue int, group netip.Addr) (number uint16, err error) {
	g := &p.queues[queue].groups
	if g.joined == maxGroups {
		return 0, errGroups
	}
	if g.watch < 0 {
		if err := g.begin(); err != nil {
			return 0, fmt.Errorf("udp: port %q: epoll: %w", p.info.Name, err)
		}
	}
	fd, err := g.open(group)
	if err != nil {
		return 0, fmt.Errorf("udp: port %q: group %s: %w", p.info.Name, group, err)
	}
	at := 0
	for at < len(g.list) && g.list[at].fd >= 0 {
		at++
	}
	if at == len(g.list) {
		g.list = append(g.list, source{})
	}
	g.list[at] = source{fd: fd, group: uint16(at + 1)}
	g.joined++
	return uint16(at + 1), nil
}

// Leave implements port.Grouper.
func (p *Port) Leave(queue int, number uint16) {
	g := &p.queues[queue].groups
	s := &g.list[number-1]
	_ = unix.Close(s.fd) // closing leaves the group and the epoll set
	s.fd = -1
	g.joined--
	r := &p.queues[queue].rx
	for i := r.at; i < r.have; i++ {
		if m := &r.msg[i]; m.group == number { // the descriptor may soon refer to another socket
			m.off, m.length = 0, 0
		}
	}
}

func (g *groups) begin() (err error) {
	if g.watch, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		err = g.wake(g.own)
	}
	return err
}

func (g *groups) wake(fd int) error {
	return unix.EpollCtl(g.watch, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// open returns a socket that is a member of a group.
func (g *groups) open(group netip.Addr) (int, error) {
	fd, err := unix.Socket(family(group), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if g.ecn {
		markCongestion(fd, group.Is4())
	}
	err = errors.Join(
		// every urdmad and worker on the host receives the group's datagrams
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, sockaddr(netip.AddrPortFrom(group, g.address.Port()), g.index)),
		g.member(fd, group), g.wake(fd))
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// member joins a group on the port's interface only.
func (g *groups) member(fd int, group netip.Addr) error {
	if group.Is4() {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
			&unix.IPMreqn{Multiaddr: group.As4(), Address: g.address.Addr().As4(), Ifindex: int32(g.index)})
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
	return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
		&unix.IPv6Mreq{Multiaddr: group.As16(), Interface: g.index})
}

// next returns the group whose socket is read first this time; nil: the port's own socket is, and no group's.
func (g *groups) next() *source {
	if g.joined == 0 {
		return nil
	}
	for range len(g.list) + 1 {
		if g.turn++; g.turn > len(g.list) {
			g.turn = 0
			return nil
		}
		if s := &g.list[g.turn-1]; s.fd >= 0 {
			return s
		}
	}
	return nil
}

// wait returns the descriptor to wait for: the port's socket, or the epoll instance.
func (g *groups) wait(own int) (fd int) {
	if g.joined == 0 {
		return own
	}
	return g.watch
}

func (g *groups) close() {
	for i := range g.list {
		if fd := g.list[i].fd; fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	if g.watch >= 0 {
		_ = unix.Close(g.watch)
	}
}

var _ port.Grouper = (*Port)(nil)
