package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// VdevKind names the driver of a virtual device.
type VdevKind int

const (
	// VdevNone is no virtual device: the port is a NIC.
	VdevNone VdevKind = iota
	// VdevLoopback carries packets between the programs of one urdmad.
	VdevLoopback
	// VdevMemif is urdma's own driver for shared-memory rings.
	VdevMemif
	// VdevUDP is a UDP socket of the kernel; with Vdev.TCP also TCP sockets.
	VdevUDP
	// VdevDPDK is a DPDK device, with arguments for --vdev.
	VdevDPDK
)

// Vdev is the parsed form of Port.Vdev.
type Vdev struct {
	Kind VdevKind
	// Name is DPDK's name of the device, such as "net_af_packet0".
	Name string
	// Server, Socket and ID describe a memif: which end this is, the socket where the two ends meet, and the number
	// of the link on that socket.
	Server bool
	Socket string
	ID     uint32
	// Port is the UDP port number of a udp or tcp device, the same at its peers.
	Port uint16
	// TCP: connections of rdma_cm use TCP (the device "tcp").
	TCP bool
}

// OnInterface reports whether the device shares a network interface with the kernel.
func (v Vdev) OnInterface() bool {
	driver := strings.TrimRight(v.Name, "0123456789")
	_, driver, _ = strings.Cut(driver, "_") // net_, or in older texts eth_
	return v.Kind == VdevDPDK && (driver == "af_packet" || driver == "af_xdp")
}

var errMemif = errors.New("memif,role=server|client,socket=PATH[,id=N]")

// maxSocketPath is sun_path without its NUL (unix(7)).
const maxSocketPath = 107

// ParseVdev reads a port's vdev. Its error says what is allowed.
func ParseVdev(text string) (Vdev, error) {
	name, args, _ := strings.Cut(text, ",")
	switch name {
	case "":
		return Vdev{}, nil
	case "loopback":
		return Vdev{Kind: VdevLoopback, Name: name}, nil
	case "memif":
		return parseMemif(args)
	case "udp", "tcp":
		return parseUDP(name, text)
	}
	return Vdev{Kind: VdevDPDK, Name: name}, nil
}

// defaultUDPPort is the port number at which urdmads expect each other (docs/WIRE.md chapter 11).
const defaultUDPPort = 30035

func parseUDP(name, text string) (Vdev, error) {
	v := Vdev{Kind: VdevUDP, Name: name, Port: defaultUDPPort, TCP: name == "tcp"}
	number, given := strings.CutPrefix(text, name+",port=")
	if !given {
		if text != name {
			return Vdev{}, fmt.Errorf("%s[,port=N] with N from 1 to 65535", name)
		}
		return v, nil
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return Vdev{}, fmt.Errorf("%s[,port=N] with N from 1 to 65535", name)
	}
	v.Port = uint16(n)
	return v, nil
}

func parseMemif(args string) (Vdev, error) {
	v := Vdev{Kind: VdevMemif, Name: "memif"}
	seen := map[string]bool{}
	for _, arg := range strings.Split(args, ",") {
		key, value, _ := strings.Cut(arg, "=")
		if seen[key] {
			return Vdev{}, fmt.Errorf("%w with each argument once (%q is there twice)", errMemif, key)
		}
		seen[key] = true
		if err := v.memifArg(key, value); err != nil {
			return Vdev{}, err
		}
	}
	if !seen["role"] || !seen["socket"] {
		return Vdev{}, fmt.Errorf("%w, role and socket included", errMemif)
	}
	return v, nil
}

func (v *Vdev) memifArg(key, value string) error {
	switch key {
	case "role":
		if value != "server" && value != "client" {
			return fmt.Errorf("%w with role server or client, not %q", errMemif, value)
		}
		v.Server = value == "server"
	case "socket":
		if !filepath.IsAbs(value) || len(value) > maxSocketPath {
			return fmt.Errorf("%w with an absolute path of at most %d bytes, not %q", errMemif, maxSocketPath, shorten(value))
		}
		v.Socket = filepath.Clean(value)
	case "id":
		id, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return fmt.Errorf("%w with an id from 0 to 4294967295, not %q", errMemif, value)
		}
		v.ID = uint32(id)
	default:
		return fmt.Errorf("%w, no argument %q", errMemif, key)
	}
	return nil
}
