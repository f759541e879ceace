package kernelif

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// setUp sets an interface's Ethernet address, MTU and IP address (rtnetlink(7)).
func setUp(c *Config) (index int, err error) {
	dev, err := net.InterfaceByName(c.Name)
	if err != nil {
		return 0, err
	}
	link := binary.NativeEndian.AppendUint32([]byte{unix.AF_UNSPEC, 0, 0, 0}, uint32(dev.Index)) // struct ifinfomsg
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	link = binary.NativeEndian.AppendUint32(link, unix.IFF_UP)
	link = attribute(link, unix.IFLA_ADDRESS, c.MAC[:])
	link = attribute(link, unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, uint32(c.MTU)))
	if err := request(unix.RTM_NEWLINK, 0, link); err != nil {
		return 0, fmt.Errorf("its Ethernet address %x, MTU %d: %w", c.MAC, c.MTU, err)
	}
	if c.Address.Addr().IsUnspecified() {
		return dev.Index, nil
	}
	family, flags := byte(unix.AF_INET), byte(0)
	if c.Address.Addr().Is6() {
		family, flags = unix.AF_INET6, unix.IFA_F_NODAD // the port has checked for duplicates
	}
	ip := c.Address.Addr().AsSlice()
	// struct ifaddrmsg
	address := binary.NativeEndian.AppendUint32([]byte{family, byte(c.Address.Bits()), flags, 0}, uint32(dev.Index))
	address = attribute(attribute(address, unix.IFA_LOCAL, ip), unix.IFA_ADDRESS, ip)
	if err := request(unix.RTM_NEWADDR, unix.NLM_F_CREATE, address); err != nil {
		return 0, fmt.Errorf("address %s: %w", c.Address, err)
	}
	return dev.Index, nil
}

// SetMTU changes the interface's MTU, in bytes of an IP packet.
func (i *Interface) SetMTU(mtu int) error {
	link := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(link[4:], uint32(i.index))
	return request(unix.RTM_NEWLINK, 0, attribute(link, unix.IFLA_MTU, binary.NativeEndian.AppendUint32(nil, uint32(mtu))))
}

// attribute appends a netlink attribute. Values consist of whole words, except an Ethernet
// address.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	for len(b)%unix.NLA_ALIGNTO != 0 {
		b = append(b, 0)
	}
	return b
}

// request sends a netlink request and waits for its acknowledgement.
func request(kind, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(append(b, make([]byte, 8)...), body...) // sequence and port number 0
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("rtnetlink answers %d bytes, no acknowledgement", n)
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); e != 0 {
		return unix.Errno(e)
	}
	return nil
}
