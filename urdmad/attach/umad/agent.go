package umad

import (
	"syscall"
	"time"

	"urdma/urdmad/attach/fabric"
)

// registration describes an agent; both ioctls' structures are converted to it.
type registration struct {
	qp             uint32
	class, version byte
	methods        [2]uint64 // bit mask of methods whose unsolicited requests it wants
	oui            uint32    // OUI, for vendor classes
	rmpp           byte      // RMPP version; 0: none
}

// The vendor classes that have an OUI.
const firstOUIClass, lastOUIClass = 0x30, 0x4f

func (r *registration) ofVendors() bool { return r.class >= firstOUIClass && r.class <= lastOUIClass }

// agent sends and receives MADs of a class, for one file.
type agent struct {
	registration
	file *file
	id   uint32 // number within its file
	// number is the upper half of its requests' transaction IDs, which answers repeat.
	// It is unique.
	number  uint32
	waiting map[uint32]*time.Timer // timers of unanswered requests, by the lower half
}

// maxAgents is the number of agents that a file can have (IB_UMAD_MAX_AGENTS).
const maxAgents = 32

// maxWaiting is the largest number of an agent's unanswered requests.
const maxWaiting = 4096

// wants reports whether the agent wants an unsolicited request.
func (a *agent) wants(m fabric.MAD) bool {
	method := m.Method() &^ fabric.MethodResponse
	return a.class == m.Class() && a.version == m.Version() && a.methods[method/64]>>(method%64)&1 != 0 &&
		(!a.ofVendors() || a.oui == oui(m))
}

// oui returns the OUI of a vendor MAD, which follows the RMPP header.
func oui(m fabric.MAD) uint32 { return uint32(m[37])<<16 | uint32(m[38])<<8 | uint32(m[39]) }

// register makes an agent. Like the kernel it refuses a second agent that wants the same requests
// of a port.
func (s *Server) register(f *file, r registration) (*agent, error) {
	subnet := r.class == fabric.ClassSubnet || r.class == fabric.ClassDirected
	if r.qp > 1 || subnet != (r.qp == 0) {
		return nil, syscall.EINVAL
	}
	for _, other := range s.agents {
		if other.file.device == f.device && other.class == r.class && other.version == r.version &&
			other.oui == r.oui && (other.methods[0]&r.methods[0] != 0 || other.methods[1]&r.methods[1] != 0) {
			return nil, syscall.EINVAL
		}
	}
	for id := range f.agents {
		if f.agents[id] == nil {
			s.last++
			a := &agent{registration: r, file: f, id: uint32(id), number: s.last, waiting: map[uint32]*time.Timer{}}
			f.agents[id], s.agents[a.number] = a, a
			return a, nil
		}
	}
	return nil, syscall.ENOMEM
}

func (s *Server) unregister(a *agent) {
	for _, timer := range a.waiting {
		timer.Stop()
	}
	clear(a.waiting)
	a.file.agents[a.id] = nil
	delete(s.agents, a.number)
}
