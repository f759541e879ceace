package config

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Config is the effective configuration: what the file says, and defaults
// where it says nothing.
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
	// SysfsDir is the absolute path of the tree that stands for /sys.
	SysfsDir string
	// Fabric is the absolute path of a simulated InfiniBand subnet; "" is one switch.
	Fabric string
	// FabricHosts are hosts whose urdmads' ports are in the subnet beside those that were found.
	FabricHosts []netip.Addr
	// RecorderDir is the absolute path of the directory for files of the flight recorder;
	// "": none are written.
	RecorderDir string
	// StatsInterval is the time between two lines of statistics; 0 is none.
	StatsInterval time.Duration
	// Transport and Placement are what ports without their own have. Without a Transport
	// ("") each port has the one that fits it.
	Transport, Placement string
	Workers              []Worker
	// AutoWorkers: of several Workers one alone runs, unless a port has a queue for each.
	AutoWorkers bool
	Polling     Polling
	Limits      Limits
	// DeathTimeout is how long a peer may be silent with packets to acknowledge.
	DeathTimeout time.Duration
	// Responder is one of the Responder constants: what urdma ping of
	// other hosts gets. ResponderAllow are the networks that get it; none: all.
	Responder      string
	ResponderAllow []netip.Prefix
	// MetricsAddress is host:port, or "" for no metrics.
	MetricsAddress      string
	LogLevel, LogFormat string
	// Settings lists every value above with the place it came from.
	Settings []Setting
}

// Port is one network port. Where both PCIAddress and Vdev are "", as the C urdma's
// configurations have it, urdmad does not start; Warnings says so.
type Port struct {
	// Name is unique: the device's name in programs, or behind that a slash and Number where Device
	// was given.
	Name string
	// Device is the device's name in programs, and Number the port's on it, from 1. Ports of a
	// device follow each other.
	Device string
	Number int
	// PCIAddress has the form 0000:03:00.0, in lower case with its domain.
	PCIAddress string
	// Vdev is "loopback", "memif,…" or a DPDK device; see ParseVdev.
	Vdev string
	// Address is the port's own address, of IPv4 or IPv6, with its network's prefix
	// length. On a udp port 0.0.0.0 or :: stands for the address that the kernel
	// would choose, beside a KernelInterface for the one that this will have.
	Address netip.Prefix
	// Gateway is the zero Addr where there is none.
	Gateway netip.Addr
	// MTU is the largest IP packet in bytes; 0 takes that of the network
	// interface below.
	MTU int
	// RaiseMTU: where that interface's is less, raise it.
	RaiseMTU bool
	// VLAN numbers the VLAN of the port's frames; 0: none.
	VLAN int
	// KernelInterface names a network interface that the kernel gets on the port; "" for
	// none.
	KernelInterface string
	// MAC is "" for the device's own.
	MAC string
	// Allow are the networks whose datagrams a udp port looks at; none: all.
	Allow []netip.Prefix
	// CRC is CRCAsked or CRCAlways, on a tcp port.
	CRC string
	// MaxQP is the most queue pairs at a time. RxDesc and TxDesc are
	// descriptors per queue, 0 for the driver's choice. RxBurst and TxBurst
	// are packets.
	MaxQP, RxDesc, TxDesc, RxBurst, TxBurst int
	// Protocol is ProtocolTRP or ProtocolRoCE.
	Protocol string
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

// UDP reports whether the port is a UDP socket of the kernel's, with TCP or without.
func (p *Port) UDP() bool {
	v, err := ParseVdev(p.Vdev)
	return err == nil && v.Kind == VdevUDP
}

// roceUDPPort is where RoCEv2 packets go.
const roceUDPPort = 4791

// SocketPort is the UDP port number of a udp port, 0 of any other.
func (p *Port) SocketPort() uint16 {
	switch v, _ := ParseVdev(p.Vdev); {
	case v.Kind == VdevUDP && p.RoCE():
		return roceUDPPort
	default:
		return v.Port
	}
}

// usesEAL reports whether the port is DPDK's.
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
	Core int // -1 binds it to none
}

// Polling is what a worker does when it finds no work.
type Polling struct {
	Spin, Yield time.Duration
	// MaxSleep 0 never sleeps.
	MaxSleep time.Duration
	// Slice 0 leaves the kernel's own.
	Slice time.Duration
	Nice  int
}

// Limits bounds each client; Clients bounds their number, and UserShare, in
// percent, what one user's clients may have of what there is for all.
type Limits struct {
	QueuePairs, MemoryRegions, CompletionQueues, ProtectionDomains  int
	SharedReceiveQueues                                             int
	Contexts, CompletionChannels, EventChannels, CMIDs, Files, Maps int
	RegisteredBytes, QueueBytes                                     uint64
	Clients, UserShare                                              int
}

//go:embed default.json
var defaultFile []byte

// defaultSource is Config.Source of Default.
const defaultSource = "built-in default"

// Default is what urdmad runs with when it is given no file: one loopback
// port that needs neither root nor hugepages.
func Default() *Config {
	c, err := parse(defaultSource, defaultFile, refuseUnknown)
	if err != nil {
		panic(err) // the file is part of the program, and a test parses it
	}
	return c
}

//go:embed default-udp.json
var defaultUDPFile []byte

// DefaultSockets is what urdmad --udp and --tcp run with, by vdev: one port that reaches
// whatever the kernel reaches, and needs neither root nor hugepages either.
func DefaultSockets(vdev string) *Config {
	c, err := parse(defaultSource, bytes.Replace(defaultUDPFile, []byte(`"udp"`), []byte(strconv.Quote(vdev)), 1), refuseUnknown)
	if err != nil {
		panic(err) // as above
	}
	return c
}

// Load reads a file for urdmad. It calls warn, which may be nil, for each
// unknown property, and goes on; everything else wrong is an error, of type
// Errors or *Error.
func Load(path string, warn func(string)) (*Config, error) {
	return load(path, func(e *Error) error {
		if warn != nil {
			warn(e.Error() + "; it is ignored")
		}
		return nil
	})
}

// LoadStrict is Load that refuses unknown properties too: the error tells everything
// that is wrong with a file.
func LoadStrict(path string) (*Config, error) { return load(path, refuseUnknown) }

// CheckBytes tells what LoadStrict would for a file's content that is at hand; errors
// call it name.
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

// Standard is the name of standard input.
const Standard = "-"

// readFile never waits for a writer: a FIFO without one is empty, and one that
// has one is read until it closes.
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
	_ = f.SetReadDeadline(time.Now().Add(readTime)) // a regular file has none
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

// parse passes one file through its doors; see the package's comment.
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
	errs = append(errs, checkRules(d, c)...)
	if err := errs.orNil(); err != nil {
		return nil, err
	}
	return c, nil
}

// wrongForm tells whether values may be missing or of the wrong type, so
// that reading them makes no sense.
func wrongForm(found Errors) bool {
	for _, e := range found {
		if !e.Unknown {
			return true
		}
	}
	return false
}
