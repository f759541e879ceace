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
	// Driver is the driver's name in Info; "" means "udp".
	Driver string
	// Address is the address of a network interface of the kernel's, and the socket's UDP port number.
	Address netip.AddrPort
	// MAC is the device's Ethernet address as programs see it; zero means one derived from Address.
	MAC [6]byte
	// MTU is the largest IP packet in bytes; 0 means the interface's.
	MTU int
	// Allow are the networks from which datagrams are accepted; empty: all.
	Allow []netip.Prefix
	// ECN lets routers mark datagrams when they have a queue instead of dropping them (RFC 3168); received
	// datagrams have their traffic class.
	ECN bool
	// Renumber, if set, is for packets whose last bytes cover the IP header (RoCEv2) and were computed for an
	// IPv4 identification of 0: it adapts them to another.
	Renumber func(payload []byte, was, is uint16)
	// Sockets is the number of queues, each with a socket at the same address; 0 means one. Filter's result
	// is the number of the socket for a datagram (socket(7), SO_ATTACH_REUSEPORT_CBPF; its offsets are
	// relative to the payload).
	Sockets int
	Filter  []unix.SockFilter
	// Log gets a line if the kernel fails to do what the probe had found it can; nil: no log.
	Log *slog.Logger
}

// DefaultPort is the UDP port number at which urdmads expect each other (docs/WIRE.md chapter 11).
const DefaultPort = 30035

const (
	minMTU     = 576
	minMTU6    = 1280  // IPv6's minimum MTU (RFC 8200 section 5)
	maxPacket  = 65535 // the largest IP packet
	driverName = "udp"
	udpHeader  = 8
)

// fill checks the options, sets defaults, and returns the network interface.
func (o *Options) fill() (iface net.Interface, err error) {
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
	if iface, err = interfaceOf(o.Address.Addr()); err != nil {
		return iface, fmt.Errorf("udp: port %q: %w", o.Name, err)
	}
	if o.MTU == 0 || o.MTU > iface.MTU {
		o.MTU = iface.MTU
	}
	o.MTU = min(o.MTU, maxPacket)
	least := minMTU
	if o.Address.Addr().Is6() {
		least = minMTU6
	}
	if o.MTU < least {
		return iface, fmt.Errorf("udp: port %q: MTU %d of %s, which has %s, is below %d", o.Name, o.MTU, iface.Name,
			o.Address.Addr(), least)
	}
	return iface, nil
}

// fragmentFrom returns port.Info.FragmentFrom for an interface with this MTU. Routers do not fragment IPv6,
// and the kernel fragments only datagrams longer than the MTU that it knows for the path: IPV6_MTU (ipv6(7))
// sets the length of fragments, but not whether there are any.
func fragmentFrom(a netip.Addr, mtu int) int {
	const more = 8 // longer than the link's MTU by this much, which leaves room for padding
	if size := mtu + more - ipHeader(a) - udpHeader; a.Is6() && size+udpHeader <= maxPacket {
		return size
	}
	return 0
}

// ipHeader returns the length of an IP header without options.
func ipHeader(a netip.Addr) int {
	if a.Is4() {
		return 20
	}
	return 40
}

// madeUpMAC returns a locally administered address that is unique among hosts of the same network, because
// its last bytes are the IP address's.
func madeUpMAC(a netip.Addr) [6]byte {
	ip := a.As16()
	return [6]byte{0x02, 0x75, ip[12], ip[13], ip[14], ip[15]}
}

// interfaceOf returns the interface that has an address.
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
	return net.Interface{}, fmt.Errorf("no interface of this machine has the address %s: take one that \"ip address\" "+
		"shows", a)
}

var _ port.Port = (*Port)(nil)
