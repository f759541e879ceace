package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Config is the effective configuration: the values of the file, with defaults for all that the file leaves out.
type Config struct {
	// Source is the file's name, or "built-in default".
	Source string
	Ports  []Port
	// EALArgs are arguments for rte_eal_init in the file's order, without the
	// program's name.
	EALArgs []string
	// Socket is the absolute path of the control socket.
	Socket string
	// SocketGroup is a group's name or number; "" leaves the socket 0600.
	SocketGroup string
	// SysfsDir is the absolute path of the directory tree that programs see as /sys.
	SysfsDir string
	// Fabric is the absolute path of the file that describes a simulated InfiniBand subnet; "" simulates one
	// switch.
	Fabric string
	// RecorderDir is the absolute path of the directory for the flight recorder's files; "" writes none.
	RecorderDir string
	// StatsInterval is the time between two lines of statistics in the log; 0 logs none.
	StatsInterval time.Duration
	// Profile is one of personality.ProfileNames, which determines the transport of all ports; "" is none.
	Profile string
	// Transport and Placement apply to ports that set none of their own. With Transport "" each port gets the
	// transport that fits it.
	Transport, Placement string
	Workers              []Worker
	// AutoWorkers: only the first of several Workers runs, unless a port has a queue for each.
	AutoWorkers bool
	Polling     Polling
	Limits      Limits
	// DeathTimeout is how long a peer may be silent with packets to acknowledge.
	DeathTimeout time.Duration
	// Responder is one of the Responder constants: whether urdmad answers urdma ping of other hosts. ResponderAllow
	// lists the networks that are answered; none: all.
	Responder      string
	ResponderAllow []netip.Prefix
	// MetricsAddress is HOST:PORT, or "" for no metrics.
	MetricsAddress      string
	LogLevel, LogFormat string
	// Settings lists every value above with the place it came from.
	Settings []Setting
}

// Port is one network port. If PCIAddress and Vdev are both "", as in configurations of the C urdma, urdmad does
// not start, and Warnings says so.
type Port struct {
	// Name is unique. It is the name of the device in programs; for a port with Device set, a slash and Number
	// follow.
	Name string
	// Device is the device's name in programs, Number the port's number on it, from 1. The ports of a device stand
	// together in the file.
	Device string
	Number int
	// PCIAddress has the form 0000:03:00.0, in lower case and with the domain.
	PCIAddress string
	// Vdev is "loopback", "memif,…" or a DPDK device; see ParseVdev.
	Vdev string
	// Address is the port's IPv4 or IPv6 address with the prefix length of its network. On a udp port, 0.0.0.0 or
	// :: stands for the address that the kernel chooses; on a port with a KernelInterface, for that interface's
	// address.
	Address netip.Prefix
	// Gateway is the zero Addr if there is no gateway.
	Gateway netip.Addr
	// MTU is the largest IP packet in bytes; 0 takes the MTU of the network interface under the port.
	MTU int
	// RaiseMTU: raise the MTU of that interface if it is lower.
	RaiseMTU bool
	// VLAN is the VLAN ID of the port's frames; 0: untagged.
	VLAN int
	// KernelInterface names a network interface of the kernel that urdmad creates on the port; "" creates none.
	KernelInterface string
	// MAC is the port's Ethernet address; "" is the device's own.
	MAC string
	// Allow lists the networks from which a udp port accepts datagrams; none: all.
	Allow []netip.Prefix
	// CRC is CRCAsked or CRCAlways; tcp ports only.
	CRC string
	// MaxQP is the largest number of queue pairs at a time. RxDesc and TxDesc are descriptors per queue, 0 for the
	// driver's default. RxBurst and TxBurst are in packets.
	MaxQP, RxDesc, TxDesc, RxBurst, TxBurst int
	// Protocol is ProtocolTRP or ProtocolRoCE.
	Protocol string
	// RawPackets is one of the Raw constants.
	RawPackets string
	// Transport is one of personality.Names; Placement is PlacementOrdered or
	// PlacementImmediate.
	Transport, Placement string
}

// AddressSetting is the name of the setting that Address came from.
func (p *Port) AddressSetting() string {
	if p.Address.IsValid() && p.Address.Addr().Is6() {
		return "ipv6_address"
	}
	return "ipv4_address"
}

// UDP reports whether the port uses a UDP socket of the kernel, with TCP or without.
func (p *Port) UDP() bool {
	v, err := ParseVdev(p.Vdev)
	return err == nil && v.Kind == VdevUDP
}

// roceUDPPort is the destination UDP port number of RoCEv2 packets.
const roceUDPPort = 4791

// SocketPort is the UDP port number of a udp port, or 0 for any other port.
func (p *Port) SocketPort() uint16 {
	switch v, _ := ParseVdev(p.Vdev); {
	case v.Kind == VdevUDP && p.RoCE():
		return roceUDPPort
	default:
		return v.Port
	}
}

// usesEAL reports whether DPDK drives the port.
func (p *Port) usesEAL() bool {
	v, err := ParseVdev(p.Vdev)
	return err == nil && (v.Kind == VdevNone || v.Kind == VdevDPDK)
}

// The values of Port.CRC.
const (
	CRCAsked  = "asked"
	CRCAlways = "always"
)

// The values of Port.Protocol.
const (
	ProtocolTRP  = "trp"
	ProtocolRoCE = "rocev2"
)

// RoCE reports whether the port speaks RoCEv2.
func (p *Port) RoCE() bool { return p.Protocol == ProtocolRoCE }

// The values of Port.RawPackets.
const (
	RawOff   = "off"
	RawNonIP = "non-ip"
	RawAll   = "all"
)

// The values of Port.Placement.
const (
	PlacementOrdered   = "ordered"
	PlacementImmediate = "immediate"
)

// The values of Config.Responder.
const (
	ResponderOff  = "off"
	ResponderPing = "ping"
)

// Worker is one poll loop.
type Worker struct {
	Core int // -1: not bound to a core
}

// Polling says what a worker does when it finds no work.
type Polling struct {
	Spin, Yield time.Duration
	// MaxSleep 0 never sleeps.
	MaxSleep time.Duration
	Nice     int
}

// Limits bounds what each client may use; Clients bounds the number of clients, and UserShare, in percent, the part
// of all resources that the clients of one user may use.
type Limits struct {
	QueuePairs, MemoryRegions, CompletionQueues, ProtectionDomains  int
	SharedReceiveQueues                                             int
	Contexts, CompletionChannels, EventChannels, CMIDs, Files, Maps int
	RegisteredBytes, QueueBytes                                     uint64
	Clients, UserShare                                              int
}

//go:embed default.json
var defaultFile []byte

// defaultSource is the Source of Default.
const defaultSource = "built-in default"

// Default is the configuration without a file: one loopback port that needs neither root nor hugepages.
func Default() *Config {
	c, err := parse(defaultSource, defaultFile, refuseUnknown)
	if err != nil {
		panic(err) // the file is embedded, and a test parses it
	}
	return c
}

// UserFile returns the file that the user's systemd unit reads; "" if there is none. urdmad by itself reads none.
func UserFile() string {
	dir, err := os.UserConfigDir()
	file := filepath.Join(dir, "urdma/urdma.json")
	if _, none := os.Stat(file); err != nil || none != nil {
		return ""
	}
	return file
}

//go:embed default-udp.json
var defaultUDPFile []byte

// DefaultSockets is the configuration of urdmad --udp and --tcp, by vdev: one port that reaches all that the kernel
// reaches, without root or hugepages.
func DefaultSockets(vdev string) *Config {
	c, err := parse(defaultSource, bytes.Replace(defaultUDPFile, []byte(`"udp"`), []byte(strconv.Quote(vdev)), 1),
		refuseUnknown)
	if err != nil {
		panic(err) // as above
	}
	return c
}

// Load reads a file for urdmad. For each unknown property it calls warn, which may be nil, and goes on. Any other
// mistake is an error, of type Errors or *Error.
func Load(path string, warn func(string)) (*Config, error) {
	return load(path, func(e *Error) error {
		if warn != nil {
			warn(e.Error() + "; it is ignored")
		}
		return nil
	})
}

// LoadStrict is Load that refuses unknown properties, too. Its error lists all mistakes in the file.
func LoadStrict(path string) (*Config, error) { return load(path, refuseUnknown) }

// CheckBytes returns the error that LoadStrict would return for a file of this content; the error calls the file
// name.
func CheckBytes(name string, src []byte) error {
	_, err := parse(name, src, refuseUnknown)
	return err
}

func refuseUnknown(e *Error) error { return e }

func load(path string, unknown func(*Error) error) (*Config, error) {
	src, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, src, unknown)
}

// Standard is the file name that stands for standard input.
const Standard = "-"

// readFile never waits for a writer: a FIFO without a writer is empty, and one with a writer is read until it
// closes.
func readFile(path string) ([]byte, error) {
	if path == Standard {
		return io.ReadAll(io.LimitReader(os.Stdin, maxBytes+1))
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, unreadable(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(readTime)) // fails for a regular file, which needs none
	src, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return src, nil
}

// readTime bounds how long a FIFO's writer may take.
const readTime = 5 * time.Second

func unreadable(path string, err error) *Error {
	var pe *os.PathError
	reason := err
	if errors.As(err, &pe) {
		reason = pe.Err
	}
	return &Error{File: path, Found: fmt.Sprintf("a file that cannot be read (%v)", reason),
		Allowed: "a readable file", Err: err}
}

// parse passes one file through the three checks in the package comment.
func parse(file string, src []byte, unknown func(*Error) error) (*Config, error) {
	d, err := decode(file, src)
	if err != nil {
		return nil, err
	}
	found, err := validate(d)
	if err != nil {
		return nil, err
	}
	var errs Errors
	for _, e := range found {
		if !e.Unknown || unknown(e) != nil {
			errs = append(errs, e)
		}
	}
	if wrongForm(found) {
		return nil, errs.orNil()
	}
	c := read(d)
	for _, e := range checkRules(d, c) {
		if !errs.has(e.Path) {
			errs = append(errs, e)
		}
	}
	if err := errs.orNil(); err != nil {
		return nil, err
	}
	return c, nil
}

// wrongForm reports whether values are missing or of the wrong type, so that they cannot be read.
func wrongForm(found Errors) bool {
	for _, e := range found {
		if !e.Unknown && !e.value {
			return true
		}
	}
	return false
}
