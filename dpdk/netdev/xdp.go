package netdev

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// XDP is a program that an interface runs on each frame before the kernel processes it.
type XDP struct {
	ID uint32 // the kernel's ID, as shown by ip link show; 0: there is no program
	// Mode is the way the program runs, in the words of ip link set: "xdp" (in the driver), "xdpgeneric" or
	// "xdpoffload".
	Mode string
}

// XDP asks the kernel for the interface's program (rtnetlink(7), IFLA_XDP). If there are several, one for
// each mode, it returns one of them.
func (i *Interface) XDP() (XDP, error) {
	links, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return XDP{}, fmt.Errorf("network interface %d: netlink: %w", i.index, err)
	}
	messages, err := syscall.ParseNetlinkMessage(links)
	if err != nil {
		return XDP{}, fmt.Errorf("network interface %d: netlink: %w", i.index, err)
	}
	for _, m := range messages {
		if m.Header.Type == unix.RTM_NEWLINK && len(m.Data) >= unix.SizeofIfInfomsg &&
			binary.NativeEndian.Uint32(m.Data[4:]) == i.index {
			return xdpOf(m.Data[unix.SizeofIfInfomsg:]), nil
		}
	}
	return XDP{}, fmt.Errorf("network interface %d: %w", i.index, unix.ENODEV)
}

// modes are the attributes of IFLA_XDP that hold a program's ID.
var modes = map[uint16]string{unix.IFLA_XDP_DRV_PROG_ID: "xdp", unix.IFLA_XDP_SKB_PROG_ID: "xdpgeneric",
	unix.IFLA_XDP_HW_PROG_ID: "xdpoffload"}

// xdpOf looks for a program in the attributes of a link.
func xdpOf(link []byte) (x XDP) {
	attributes(link, func(kind uint16, value []byte) {
		if kind != unix.IFLA_XDP {
			return
		}
		attributes(value, func(kind uint16, value []byte) {
			if mode, ok := modes[kind]; ok && len(value) == 4 {
				x = XDP{ID: binary.NativeEndian.Uint32(value), Mode: mode}
			}
		})
	})
	return x
}

// attributes calls f for each complete attribute (netlink(7), nlattr).
func attributes(b []byte, f func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofNlAttr || length > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofNlAttr:length])
		b = b[min(len(b), (length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
	}
}
