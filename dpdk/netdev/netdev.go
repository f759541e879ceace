// Package netdev manages the kernel's network interface that a port uses: its MTU, its link state, accepting
// frames for other addresses, and its XDP program.
//
// It knows nothing of DPDK or of frames. An interface is identified by its index, so that renaming it does no
// harm and a new interface with the old name is not mistaken for it (netdevice(7), rtnetlink(7)).
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
	fd    int // a socket for ioctl
}

// State is the state of an interface at one moment.
type State struct {
	// Up: frames can pass; the interface is up and has a carrier.
	Up bool
	// Promiscuous: the flag is set on the interface itself (ip link set promisc on).
	Promiscuous bool
	// Gone: the interface was deleted, or moved to another network namespace.
	Gone bool
	Name string
	MTU  int // bytes
}

// ByName finds an interface. The error wraps ENODEV if there is none.
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

// ByIndex returns an existing interface.
func ByIndex(index uint32) (*Interface, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	return &Interface{index: index, fd: fd}, nil
}

// Name returns the present name of an interface, or "" if there is none with this index.
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

// Close closes the socket; the interface is not changed.
func (i *Interface) Close() error { return unix.Close(i.fd) }

// request returns an ioctl argument with the interface's present name.
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

// renaming is how long an interface may have no name during a rename: the kernel removes the old name first,
// and adds the new one when all processors have seen that.
const renaming = 5 * time.Second

// State asks the kernel, mostly by name, so it waits while the interface is being renamed. Gone is set if no
// interface has this index.
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

// stateOf returns the state of the interface with the request's name.
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

// goneOr converts an error that means that the interface does not exist to a State.
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

// ReceiveAll makes the interface accept frames for any address until the returned descriptor is closed, by
// the end of the process at the latest (packet(7)); it needs CAP_NET_RAW.
func (i *Interface) ReceiveAll() (fd int, err error) {
	return i.membership(unix.PACKET_MR_PROMISC, "promiscuous")
}

// ReceiveGroups is like ReceiveAll, for multicast frames only.
func (i *Interface) ReceiveGroups() (fd int, err error) {
	return i.membership(unix.PACKET_MR_ALLMULTI, "all multicast")
}

func (i *Interface) membership(kind uint16, what string) (fd int, err error) {
	// with protocol 0 the socket itself receives nothing
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
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
