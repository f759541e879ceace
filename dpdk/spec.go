package dpdk

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Spec has the settings of one port. Exactly one of Vdev and PCI is set.
type Spec struct {
	// Name is the port's name in logs and in port.Info; empty: the device's.
	Name string
	// Vdev is a DPDK device string ("net_af_packet0,iface=eth1", "net_tap0", …)
	// or one of our own drivers: "loopback", or
	// "memif,role=server|client,socket=PATH[,id=N][,mtu=N][,ring=N][,secret=S]",
	// or "udp[,port=N]".
	Vdev string
	// Address is the port's IP address: udp binds it, and its family determines how a device chooses queues.
	Address netip.Addr
	// Allow are the networks from which udp accepts datagrams; empty: all.
	Allow []netip.Prefix
	// ECN makes udp's datagrams ECN-capable (RFC 3168).
	ECN bool
	// Renumber makes udp's packets cover the IPv4 identification (udp.Options).
	Renumber func(payload []byte, was, is uint16)
	// Queues is the desired number of queues, 0 for one. Supported by udp (a socket each, among which Filter
	// chooses, see udp.Options), memif, tap, and PCI devices that have as many.
	Queues int
	Filter []unix.SockFilter
	// QueueOf returns the queue for UDP packets with a destination port number (or, if BySource is set, a
	// source port number), of which it uses the lowest rssBits bits. Devices that can be configured so
	// deliver packets there. Nil: queue 0.
	QueueOf  func(number int) int
	BySource bool
	// PeerQueue returns the queue, out of the number that a memif's peer has, to which a frame is sent
	// (memif.Options.Ring).
	PeerQueue func(frame []byte, queues int) int
	// PCI is the address of a device bound to vfio-pci or a similar driver: "0000:01:00.0", optionally with
	// DPDK arguments after a comma.
	PCI string
	// MAC is the desired Ethernet address; zero means the device's.
	MAC [6]byte
	// MTU is the largest IPv4 packet; 0 means the device's or network interface's MTU (memif: 1500).
	MTU int
	// RaiseMTU raises the network interface's MTU if it is smaller, until the port is closed; without it a
	// smaller MTU is an error.
	RaiseMTU bool
	// VLAN is the VLAN of a DPDK device's frames on the wire, 1 to 4094; the port adds and removes the tags.
	// 0: frames have no tag.
	VLAN int
	// RxDesc and TxDesc are ring sizes; 0 means 1024. memif uses the larger one for all rings.
	RxDesc, TxDesc int
}

const (
	defaultDesc = 1024
	minMTU      = 576
	maxMTU      = 9600
)

// device returns the string that DPDK probes.
func (s *Spec) device() string {
	if s.PCI != "" {
		return s.PCI
	}
	return s.Vdev
}

// base returns the device's own name: the part before the first comma.
func (s *Spec) base() string {
	name, _, _ := strings.Cut(s.device(), ",")
	return name
}

// native reports whether the spec names one of our pure Go drivers.
func (s *Spec) native() bool {
	return s.PCI == "" && slices.Contains([]string{"loopback", "memif", "udp", "tcp"}, s.base())
}

// Check returns errors in a spec that can be found before anything is opened.
func (s *Spec) Check() error {
	switch {
	case s.Vdev == "" && s.PCI == "":
		return fmt.Errorf("dpdk: port %q names neither a vdev nor a PCI device; urdma doctor lists the cards", s.Name)
	case s.Vdev != "" && s.PCI != "":
		return fmt.Errorf("dpdk: port %q names a vdev (%s) and a PCI device (%s); one is meant", s.Name, s.Vdev, s.PCI)
	case s.MTU != 0 && (s.MTU < minMTU || s.MTU > maxMTU):
		return fmt.Errorf("dpdk: port %q: MTU %d is outside %d to %d", s.label(), s.MTU, minMTU, maxMTU)
	case badDesc(s.RxDesc) || badDesc(s.TxDesc):
		return fmt.Errorf("dpdk: port %q: %d receive and %d transmit descriptors; each must be 0 (for %d) or 32 to 16384",
			s.label(), s.RxDesc, s.TxDesc, defaultDesc)
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

// SettingError is an error in a port's settings that can only be found on the machine.
type SettingError struct {
	Port    string // the port's name
	Setting string // the setting's name in urdma.json
	Found   any
	Allowed string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("port %q: %s: found %v, allowed: %s", e.Port, e.Setting, e.Found, e.Allowed)
}

// BusyError is the error of a port whose device another process uses. It may pass by itself: the kernel takes
// the queue of a process back a moment after the process has ended (xp_release_deferred of Linux's
// net/xdp/xsk_buff_pool.c).
type BusyError struct{ error }

// Unwrap returns what the port failed with.
func (e *BusyError) Unwrap() error { return e.error }
