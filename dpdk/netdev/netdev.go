// Package netdev is what a port has to do with the kernel's network interface
// below it: its MTU, whether its link is up, letting frames in
// that are for another address, and whether an XDP program takes them first.
//
// It knows nothing of DPDK or of frames. An interface is held by its index, so
// that a new name loses nothing and a new interface of the old name is not taken
// for it (netdevice(7), rtnetlink(7)).
package netdev

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Interface is a network interface of this process's network namespace.
type Interface struct {
	index uint32
	fd    int // a socket, for ioctl
}

// State is what an interface is at one moment.
type State struct {
	// Up: frames can pass; the interface is up and has a carrier.
	Up bool
	// Promiscuous: somebody set the flag on the interface itself (ip link set
	// promisc on).
	Promiscuous bool
	// Gone: it was deleted, or moved to another network namespace.
	Gone bool
	Name string
	MTU  int // bytes
}

// ByName finds an interface. The error wraps ENODEV where there is none.
func ByName(name string) (*Interface, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil || strings.ContainsRune(name, 0) { // no interface can have such a name
		return nil, fmt.Errorf("network interface %q: %w", name, unix.ENODEV)
	}
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("network interface %q: %w", name, err)
	}
	return &Interface{index: ifr.Uint32(), fd: fd}, nil
}

// ByIndex takes an interface that exists.
func ByIndex(index uint32) (*Interface, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	return &Interface{index: index, fd: fd}, nil
}

// Name is what an interface is called, or empty if there is none of that index.
func Name(index uint32) string {
	i, err := net.InterfaceByIndex(int(index))
	if err != nil {
		return ""
	}
	return i.Name
}

func socket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("network interfaces: socket: %w", err)
	}
	return fd, nil
}

// Close gives the socket back; nothing happens to the interface.
func (i *Interface) Close() error { return unix.Close(i.fd) }

// request is an ioctl's argument with the interface's present name.
func (i *Interface) request() (*unix.Ifreq, error) {
	ifr, err := unix.NewIfreq("")
	if err != nil {
		return nil, err
	}
	ifr.SetUint32(i.index)
	if err := unix.IoctlIfreq(i.fd, unix.SIOCGIFNAME, ifr); err != nil {
		return nil, fmt.Errorf("network interface %d: %w", i.index, err)
	}
	return unix.NewIfreq(ifr.Name())
}

// renaming is how long an interface may be found by no name: the kernel forgets the
// old one, and takes the new one when all processors have seen that.
const renaming = 5 * time.Second

// State asks the kernel. Most of what it has to ask it asks by name, so it waits
// while the interface gets another; Gone says that there is none of its index.
func (i *Interface) State() (s State, err error) {
	for end := time.Now().Add(renaming); ; time.Sleep(time.Millisecond) {
		ifr, err := i.request()
		if err != nil {
			return goneOr(err)
		}
		s, err = i.stateOf(ifr)
		if !gone(err) || time.Now().After(end) {
			return s, err
		}
	}
}

// stateOf is the state of the interface that has the request's name.
func (i *Interface) stateOf(ifr *unix.Ifreq) (s State, err error) {
	s.Name = ifr.Name()
	if err = unix.IoctlIfreq(i.fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return State{}, err
	}
	const running = unix.IFF_UP | unix.IFF_RUNNING
	s.Up = ifr.Uint16()&running == running
	s.Promiscuous = ifr.Uint16()&unix.IFF_PROMISC != 0
	if err = unix.IoctlIfreq(i.fd, unix.SIOCGIFMTU, ifr); err != nil {
		return State{}, err
	}
	s.MTU = int(ifr.Uint32())
	return s, nil
}

func gone(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) }

// goneOr makes a State of the error that says that there is no such interface.
func goneOr(err error) (State, error) {
	if gone(err) {
		return State{Gone: true}, nil
	}
	return State{}, err
}

// SetMTU changes the interface's MTU; it needs CAP_NET_ADMIN.
func (i *Interface) SetMTU(mtu int) error {
	ifr, err := i.request()
	if err != nil {
		return err
	}
	ifr.SetUint32(uint32(mtu))
	if err := unix.IoctlIfreq(i.fd, unix.SIOCSIFMTU, ifr); err != nil {
		return fmt.Errorf("MTU %d for network interface %s: %w", mtu, ifr.Name(), err)
	}
	return nil
}

// SetPromiscuous sets the flag on the interface; it needs CAP_NET_ADMIN.
func (i *Interface) SetPromiscuous() error {
	ifr, err := i.request()
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(i.fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return fmt.Errorf("network interface %s: %w", ifr.Name(), err)
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_PROMISC)
	if err := unix.IoctlIfreq(i.fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("network interface %s: promiscuous: %w", ifr.Name(), err)
	}
	return nil
}

// ReceiveAll has the interface let in frames for any address until the
// descriptor that it returns is closed, even by the process's end (packet(7)); it
// needs CAP_NET_RAW.
func (i *Interface) ReceiveAll() (fd int, err error) {
	return i.membership(unix.PACKET_MR_PROMISC, "promiscuous")
}

// ReceiveGroups is ReceiveAll for frames to groups alone.
func (i *Interface) ReceiveGroups() (fd int, err error) {
	return i.membership(unix.PACKET_MR_ALLMULTI, "all multicast")
}

func (i *Interface) membership(kind uint16, what string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0 receives nothing
	if err != nil {
		return -1, fmt.Errorf("network interface %d: packet socket: %w", i.index, err)
	}
	m := unix.PacketMreq{Ifindex: int32(i.index), Type: kind}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("network interface %d: %s: %w", i.index, what, err)
	}
	return fd, nil
}
