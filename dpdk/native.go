package dpdk

import (
	"fmt"
	"log/slog"
	"math/bits"
	"net/netip"
	"strconv"

	"urdma/dpdk/loopback"
	"urdma/dpdk/memif"
	"urdma/dpdk/port"
	"urdma/dpdk/udp"
)

// nativeSpec is a parsed spec of a pure Go driver.
type nativeSpec struct {
	driver string
	mtu    int
	memif  memif.Options
	udp    udp.Options
}

// parseNative reads the arguments in a spec of a pure Go driver; unknown ones are errors.
func (s *Spec) parseNative() (n nativeSpec, err error) {
	args, err := arguments(s.Vdev)
	if err != nil {
		return n, fmt.Errorf("dpdk: port %q: %s: %w", s.label(), s.Vdev, err)
	}
	n.driver = s.base()
	n.mtu = s.MTU
	n.memif = memif.Options{Name: s.label(), MAC: s.MAC, MTU: s.MTU, RingSize: ringFor(s), Queues: s.Queues,
		Ring: s.PeerQueue}
	n.udp = udp.Options{Name: s.label(), MAC: s.MAC, MTU: s.MTU, Address: netip.AddrPortFrom(s.Address, udp.DefaultPort),
		Allow: s.Allow, ECN: s.ECN, Renumber: s.Renumber,
		Sockets: s.Queues, Filter: s.Filter}
	for k, v := range args {
		if err := n.set(k, v); err != nil {
			return n, fmt.Errorf("dpdk: port %q: %s: %s=%s: %w", s.label(), s.Vdev, k, v, err)
		}
	}
	if n.driver != "memif" {
		return n, nil
	}
	if args["role"] == "" {
		return n, fmt.Errorf("dpdk: port %q: %s: %w", s.label(), s.Vdev, errRole)
	}
	if n.memif.SocketPath == "" {
		return n, fmt.Errorf("dpdk: port %q: %s: socket=PATH is missing", s.label(), s.Vdev)
	}
	if err := n.memif.Check(); err != nil {
		return n, fmt.Errorf("dpdk: port %q: %s: %w", s.label(), s.Vdev, err)
	}
	return n, nil
}

func (n *nativeSpec) set(key, value string) (err error) {
	if key == "mtu" {
		n.mtu, err = strconv.Atoi(value)
		n.memif.MTU, n.udp.MTU = n.mtu, n.mtu
		if err == nil && (n.mtu < minMTU || n.mtu > maxMTU) {
			err = fmt.Errorf("an MTU is from %d to %d", minMTU, maxMTU)
		}
		return err
	}
	switch n.driver {
	case "loopback":
		return fmt.Errorf("loopback knows only mtu")
	case "udp", "tcp":
		return n.setUDP(key, value)
	}
	return n.setMemif(key, value)
}

func (n *nativeSpec) setUDP(key, value string) error {
	number, err := strconv.ParseUint(value, 10, 16)
	if key != "port" || err != nil || number == 0 {
		return fmt.Errorf("%s knows port, from 1 to 65535", n.driver)
	}
	n.udp.Address = netip.AddrPortFrom(n.udp.Address.Addr(), uint16(number))
	return nil
}

func (n *nativeSpec) setMemif(key, value string) (err error) {
	switch key {
	case "role":
		n.memif.Server = value == "server"
		if value != "server" && value != "client" {
			return errRole
		}
	case "socket":
		n.memif.SocketPath = value
	case "id":
		var id uint64
		id, err = strconv.ParseUint(value, 10, 32)
		n.memif.ID = uint32(id)
	case "ring":
		n.memif.RingSize, err = strconv.Atoi(value)
	case "secret":
		n.memif.Secret = value
	default:
		return fmt.Errorf("memif knows role, socket, id, mtu, ring and secret")
	}
	return err
}

// ringFor returns the smallest power of two that is not less than the larger descriptor count, or 0 for the
// default.
func ringFor(s *Spec) int {
	n := max(s.RxDesc, s.TxDesc)
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(n-1))
}

func (s *Spec) openNative(log *slog.Logger) (port.Port, error) {
	n, err := s.parseNative()
	if err != nil {
		return nil, err
	}
	var p port.Port
	switch n.driver {
	case "loopback":
		return loopback.Open(s.label(), s.MAC, n.mtu, s.Address), nil
	case "udp", "tcp":
		n.udp.Log, n.udp.Driver = log, n.driver
		p, err = udp.Open(n.udp)
	default:
		n.memif.Log = log
		p, err = memif.Open(n.memif)
	}
	if err != nil {
		return nil, fmt.Errorf("dpdk: port %q: %w", s.label(), err)
	}
	return p, nil
}
