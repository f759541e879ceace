package kernelif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// State is the present state of the interface, as changed by the kernel or the administrator.
type State struct {
	Up  bool // as set by "ip link set up" and "down"
	MTU int  // bytes of an IP packet
	// Addresses are the permanent source addresses: not tentative, deprecated or temporary ones,
	// and not IPv4's secondary ones.
	Addresses []netip.Prefix
	Gone      bool // deleted, or moved to another network namespace
}

// unfit are the flags of addresses that State omits (linux/if_addr.h; a temporary IPv6 address
// has the flag of a secondary IPv4 address).
const unfit = unix.IFA_F_SECONDARY | unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED | unix.IFA_F_DEPRECATED

// Watch calls f with the interface's state, on its own goroutine, once at the beginning and after
// each change that the kernel reports, until Close or until the interface is gone.
func (i *Interface) Watch(f func(State)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("network interface %d: netlink socket: %w", i.index, err)
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return fmt.Errorf("network interface %d: netlink: %w", i.index, err)
	}
	i.news = os.NewFile(uintptr(fd), "netlink")
	i.done.Go(func() {
		b := make([]byte, 1<<16)
		for {
			s, err := i.state()
			if err == nil {
				f(s)
			}
			if s.Gone {
				return
			}
			// ENOBUFS: messages were lost, perhaps for this interface
			if _, err := i.news.Read(b); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
		}
	})
	return nil
}

// state asks the kernel for the state.
func (i *Interface) state() (s State, err error) {
	dev, err := net.InterfaceByIndex(i.index)
	if err != nil {
		if list, other := net.Interfaces(); other == nil && !hasIndex(list, i.index) {
			return State{Gone: true}, nil
		}
		return State{}, err
	}
	s.Up, s.MTU = dev.Flags&net.FlagUp != 0, dev.MTU
	s.Addresses, err = addresses(i.index)
	return s, err
}

func hasIndex(list []net.Interface, index int) bool {
	for _, dev := range list {
		if dev.Index == index {
			return true
		}
	}
	return false
}

// addresses returns the usable addresses of an interface, in the kernel's order.
func addresses(index int) (list []netip.Prefix, err error) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, err
	}
	for _, m := range messages { // struct ifaddrmsg: family, prefix length, flags, scope, index
		if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg ||
			int(binary.NativeEndian.Uint32(m.Data[4:])) != index {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, err
		}
		flags, address := uint32(m.Data[2]), []byte(nil)
		for _, a := range attributes {
			switch {
			case a.Attr.Type == unix.IFA_FLAGS && len(a.Value) == 4:
				flags = binary.NativeEndian.Uint32(a.Value)
			// IFA_ADDRESS is the far end's if there is IFA_LOCAL
			case a.Attr.Type == unix.IFA_LOCAL, a.Attr.Type == unix.IFA_ADDRESS && address == nil:
				address = a.Value
			}
		}
		if ip, ok := netip.AddrFromSlice(address); ok && flags&unfit == 0 {
			list = append(list, netip.PrefixFrom(ip, int(m.Data[1])))
		}
	}
	return list, nil
}
