package dpdk

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Spec says what one port is. Exactly one of Vdev and PCI is set.
type Spec struct {
	// Name is the port's name in logs and in port.Info; empty: the device's.
	Name string
	// Vdev is a DPDK device string ("net_af_packet0,iface=eth1", "net_tap0", …)
	// or one of our own drivers: "loopback", or
	// "memif,role=server|client,socket=PATH[,id=N][,mtu=N][,ring=N][,secret=S]",
	// or "udp[,port=N]".
	Vdev string
	// Address is the port's IP address: the kernel holds that of udp, and a card's queues are chosen in
	// its family.
	Address netip.Addr
	// Allow are the networks whose datagrams udp looks at; none: all.
	Allow []netip.Prefix
	// ECN has datagrams of udp carry marks of congestion (RFC 3168).
	ECN bool
	// Renumber has what udp sends cover the IPv4 identification (udp.Options).
	Renumber func(payload []byte, was, is uint16)
	// Queues is how many the port is to have, 0 for one, if it can: udp, a socket each, among
	// which Filter chooses (udp.Options), memif, tap, and a PCI device that has as many.
	Queues int
	Filter []unix.SockFilter
	// QueueOf is the queue for UDP packets with a destination port number, or, BySource, a source
	// port number, of which it looks at the lowest rssBits bits. A card that can be told so delivers them
	// there. Nil: queue 0.
	QueueOf  func(number int) int
	BySource bool
	// PeerQueue is the queue, of so many that a memif's peer has, that a frame to send is for
	// (memif.Options.Ring).
	PeerQueue func(frame []byte, queues int) int
	// PCI is the address of a device bound to vfio-pci or the like:
	// "0000:01:00.0", with DPDK arguments after a comma if need be.
	PCI string
	// MAC is the wanted Ethernet address; zero keeps the device's.
	MAC [6]byte
	// MTU is the largest IPv4 packet; 0 takes the device's or the network
	// interface's (memif: 1500).
	MTU int
	// RaiseMTU raises a network interface's MTU where it is less, until the port
	// is closed; otherwise that is an error.
	RaiseMTU bool
	// VLAN is the VLAN of a DPDK device's frames on the wire, 1 to 4094, whose tags the
	// port takes off and puts on; 0: frames have none.
	VLAN int
	// RxDesc and TxDesc are ring sizes; 0 means 1024. For memif the larger one
	// is the ring's.
	RxDesc, TxDesc int
}

const (
	defaultDesc = 1024
	minMTU      = 576
	maxMTU      = 9600
)

// device is the string DPDK probes.
func (s *Spec) device() string {
	if s.PCI != "" {
		return s.PCI
	}
	return s.Vdev
}

// base is the device's own name: what comes before the first comma.
func (s *Spec) base() string {
	name, _, _ := strings.Cut(s.device(), ",")
	return name
}

// native reports whether the spec means one of our pure Go drivers.
func (s *Spec) native() bool {
	return s.PCI == "" && slices.Contains([]string{"loopback", "memif", "udp", "tcp"}, s.base())
}

// Check finds what is wrong with a spec before anything is opened.
func (s *Spec) Check() error {
	switch {
	case s.Vdev == "" && s.PCI == "":
		return fmt.Errorf("dpdk: port %q names neither a vdev nor a PCI device; urdma doctor lists the cards", s.Name)
	case s.Vdev != "" && s.PCI != "":
		return fmt.Errorf("dpdk: port %q names a vdev (%s) and a PCI device (%s); one is meant", s.Name, s.Vdev, s.PCI)
	case s.MTU != 0 && (s.MTU < minMTU || s.MTU > maxMTU):
		return fmt.Errorf("dpdk: port %q: MTU %d is outside %d to %d", s.label(), s.MTU, minMTU, maxMTU)
	case badDesc(s.RxDesc) || badDesc(s.TxDesc):
		return fmt.Errorf("dpdk: port %q: %d receive and %d transmit descriptors; each must be 0 (for %d) or 32 to 16384", s.label(), s.RxDesc, s.TxDesc, defaultDesc)
	}
	if s.native() {
		_, err := s.parseNative()
		return err
	}
	return nil
}

func badDesc(n int) bool { return n != 0 && (n < 32 || n > 16384) }

func (s *Spec) label() string {
	if s.Name != "" {
		return s.Name
	}
	return s.base()
}

// arguments parses "driver,key=value,…".
func arguments(device string) (map[string]string, error) {
	_, rest, _ := strings.Cut(device, ",")
	args := map[string]string{}
	if rest == "" {
		return args, nil
	}
	for _, a := range strings.Split(rest, ",") {
		k, v, ok := strings.Cut(a, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%q is not key=value", a)
		}
		if _, twice := args[k]; twice {
			return nil, fmt.Errorf("%q is given twice", k)
		}
		args[k] = v
	}
	return args, nil
}

var errRole = errors.New("role must be server or client")

// SettingError is what is wrong with a port's settings, as far as it takes the
// machine to find out.
type SettingError struct {
	Port    string // its name
	Setting string // as urdma.json calls it
	Found   any
	Allowed string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("port %q: %s: found %v, allowed: %s", e.Port, e.Setting, e.Found, e.Allowed)
}
