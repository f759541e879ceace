package udp

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// Options describe one port.
type Options struct {
	// Name is the port's name in logs and in Info.
	Name string
	// Driver is what Info calls the driver; "" stands for "udp".
	Driver string
	// Address is the address of an interface of the kernel's, and the number of
	// the UDP port that the socket has.
	Address netip.AddrPort
	// MAC is what programs see as the device's Ethernet address; zero makes one
	// from Address.
	MAC [6]byte
	// MTU is the largest IP packet in bytes; 0 means the interface's.
	MTU int
	// Allow are the networks whose datagrams are looked at; none: all.
	Allow []netip.Prefix
	// ECN has routers mark datagrams instead of dropping them where they have a queue
	// (RFC 3168); received ones have their traffic class.
	ECN bool
	// Renumber, if set, is for packets whose last bytes cover the IP header (RoCEv2), and were
	// computed for an IPv4 identification of 0: it has them right for another.
	Renumber func(payload []byte, was, is uint16)
	// Sockets are the port's queues, each with a socket at the same address; 0 means
	// one. Filter says by its result which of them a datagram goes to (socket(7),
	// SO_ATTACH_REUSEPORT_CBPF; its offsets are those of the payload).
	Sockets int
	Filter  []unix.SockFilter
	// Log gets a line where the kernel can't do what it was found to do; nil
	// discards.
	Log *slog.Logger
}

// DefaultPort is the UDP port number where urdmads expect each other
// (docs/WIRE.md chapter 11).
const DefaultPort = 30035

const (
	minMTU     = 576
	minMTU6    = 1280  // of IPv6 (RFC 8200 section 5)
	maxPacket  = 65535 // of IP
	driverName = "udp"
	udpHeader  = 8
)

// fill checks the options, sets what was left out, and returns the network interface.
func (o *Options) fill() (below net.Interface, err error) {
	if o.Name == "" {
		o.Name = driverName
	}
	if o.Driver == "" {
		o.Driver = driverName
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MAC == ([6]byte{}) {
		o.MAC = madeUpMAC(o.Address.Addr())
	}
	if below, err = interfaceOf(o.Address.Addr()); err != nil {
		return below, fmt.Errorf("udp: port %q: %w", o.Name, err)
	}
	if o.MTU == 0 || o.MTU > below.MTU {
		o.MTU = below.MTU
	}
	o.MTU = min(o.MTU, maxPacket)
	least := minMTU
	if o.Address.Addr().Is6() {
		least = minMTU6
	}
	if o.MTU < least {
		return below, fmt.Errorf("udp: port %q: MTU %d of %s, which has %s, is below %d", o.Name, o.MTU, below.Name, o.Address.Addr(), least)
	}
	return below, nil
}

// fragmentFrom is port.Info's, for an interface of an MTU. Of IPv6 no router fragments,
// and the kernel only what is longer than it knows the path to take: IPV6_MTU of
// ipv6(7) says how long the fragments are, but not when there are any.
func fragmentFrom(a netip.Addr, mtu int) int {
	const more = 8 // than that, which leaves room for padding, too
	if size := mtu + more - ipHeader(a) - udpHeader; a.Is6() && size+udpHeader <= maxPacket {
		return size
	}
	return 0
}

// ipHeader is the length of an IP header without options.
func ipHeader(a netip.Addr) int {
	if a.Is4() {
		return 20
	}
	return 40
}

// madeUpMAC is a locally administered address that no other host with an address
// of this network makes up: its last bytes are the IP address's.
func madeUpMAC(a netip.Addr) [6]byte {
	ip := a.As16()
	return [6]byte{0x02, 0x75, ip[12], ip[13], ip[14], ip[15]}
}

// interfaceOf is the interface that has an address.
func interfaceOf(a netip.Addr) (net.Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, fmt.Errorf("interfaces: %w", err)
	}
	for _, i := range list {
		addrs, err := i.Addrs()
		if err != nil {
			return net.Interface{}, fmt.Errorf("addresses of %s: %w", i.Name, err)
		}
		for _, have := range addrs {
			p, err := netip.ParsePrefix(have.String())
			if err == nil && (p.Addr() == a || a.IsLoopback() && p.Addr().IsLoopback() && p.Contains(a)) {
				return i, nil
			}
		}
	}
	return net.Interface{}, fmt.Errorf("no interface of this machine has the address %s: take one that \"ip address\" shows", a)
}

var _ port.Port = (*Port)(nil)
