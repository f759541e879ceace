package control

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"

	"urdma/ancillary"
	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
	"urdma/wire"
)

// Server is the control side of a urdmad.
type Server struct {
	Workers []*Worker
	Devices []Device
	account.Accounts
	Sysfs    string // result of ibv_get_sysfs_path()
	Version  string // version of the firmware of devices without a profile
	Profile  string // configured personality.Profile, or empty
	Log      *slog.Logger
	MaxReads int // IRD and ORD limit of one queue pair

	hooks    []*Hooks
	requests map[abi.Type]Request // requests that objects and features answer

	connected
	Domains sharedDomains
}

// connected has the sessions.
type connected struct {
	mu       sync.Mutex // guards the other fields except nextID
	sessions map[*Session]struct{}
	closing  bool
	turn     int        // next worker among those with the fewest clients
	waiting  []*Session // sessions that have not said HELLO, oldest first
	running  sync.WaitGroup
	nextID   atomic.Uint64
	late     ancillary.Closer // of clients that connected after Close had begun
}

// PortNamed returns the number of the port with a name, or -1.
func (s *Server) PortNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Name == name {
			return i
		}
	}
	return -1
}

// DeviceNamed returns the number of the first port of the device with a name, or -1.
func (s *Server) DeviceNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Of == name {
			return i
		}
	}
	return -1
}

// First returns the number of the first port of port dev's device.
func (s *Server) First(dev int) int { return dev + 1 - s.Devices[dev].Number }

// index returns how many devices there are before the one whose first port is dev.
func (s *Server) index(dev int) (n int) {
	for i := range s.Devices[:dev] {
		if s.Devices[i].Number == 1 {
			n++
		}
	}
	return n
}

// Ports returns the number of ports of the device whose first port is dev.
func (s *Server) Ports(dev int) int {
	n := 1
	for dev+n < len(s.Devices) && s.Devices[dev+n].Number > 1 {
		n++
	}
	return n
}

// Device is a port as clients see it. Its number is its index in Server.Devices; the ports of one
// device follow each other.
type Device struct {
	Name        string // port name
	Of          string // device name, as programs see it
	Number      int    // port number on the device, from 1
	Place              // place when urdmad started; see At
	Scope       uint32 // index of the kernel interface of link-local addresses; 0: none
	MAC         [6]byte
	Personality *personality.Personality // kind of device that programs see, unless they ask for another
	MaxQP       int
	Frames      bool   // the port carries Ethernet frames
	RawPackets  uint32 // enum urdma_abi_raw_packets
	Link        func() bool

	Pairs account.Pairs         // queue pairs; on a device's first port: those of all its ports
	place atomic.Pointer[Place] // set by SetPlace; nil: Place
}

// Place is a port's address and MTU.
type Place struct {
	Address netip.Prefix // the port's address, with its network's prefix length; unspecified: none
	MTU     int          // bytes of the largest IP packet
}

// At returns the port's present place. Any goroutine may call it.
func (d *Device) At() Place {
	if p := d.place.Load(); p != nil {
		return *p
	}
	return d.Place
}

// MaxFrame returns the length of the longest frame of queue pairs of type RAW_PACKET.
func (d *Device) MaxFrame() uint32 { return uint32(d.At().MTU) + wire.EthernetLen }

// MaxDatagram returns the longest message between UD queue pairs.
func (d *Device) MaxDatagram() uint32 {
	at := d.At()
	return uint32(wire.MaxDatagram(at.MTU, wire.IPLen(at.Address.Addr())))
}
