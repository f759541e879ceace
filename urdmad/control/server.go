package control

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Server is the control side of a urdmad.
type Server struct {
	Workers []*Worker
	Devices []Device
	account.Accounts
	Sysfs    string // result of ibv_get_sysfs_path()
	Version  uint32 // major<<16 | minor<<8 | patch
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

// Ports returns the number of ports of the device whose first port is dev.
func (s *Server) Ports(dev int) int {
	n := 1
	for dev+n < len(s.Devices) && s.Devices[dev+n].Number > 1 {
		n++
	}
	return n
}
