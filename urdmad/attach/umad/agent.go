package umad

import (
	"syscall"
	"time"

	"urdma/urdmad/attach/fabric"
)

// registration is what an agent is for, of either ioctl's structure.
type registration struct {
	qp             uint32
	class, version byte
	methods        [2]uint64 // bits, of requests that it wants unasked
	oui            uint32    // of classes that vendors share
	rmpp           byte      // its version; 0: none
}

// The vendors' classes that have an OUI.
const firstOUIClass, lastOUIClass = 0x30, 0x4f

func (r *registration) ofVendors() bool { return r.class >= firstOUIClass && r.class <= lastOUIClass }

// agent sends and receives MADs of a class, for one file.
type agent struct {
	registration
	file *file
	id   uint32 // in its file
	// number is the upper half of the transaction ids of its requests, by which answers
	// find it. No two have the same.
	number  uint32
	waiting map[uint32]*time.Timer // until requests without an answer come back, by the lower half
}

// maxAgents is how many a file can have (IB_UMAD_MAX_AGENTS).
const maxAgents = 32

// maxWaiting bounds the requests of an agent that wait for answers.
const maxWaiting = 4096

// wants reports whether the agent is given a request that nobody asked for.
func (a *agent) wants(m fabric.MAD) bool {
	method := m.Method() &^ fabric.MethodResponse
	return a.class == m.Class() && a.version == m.Version() && a.methods[method/64]>>(method%64)&1 != 0 &&
		(!a.ofVendors() || a.oui == oui(m))
}

// oui is that of a vendor's MAD, behind its RMPP header.
func oui(m fabric.MAD) uint32 { return uint32(m[37])<<16 | uint32(m[38])<<8 | uint32(m[39]) }

// register makes an agent. The kernel refuses a second one that wants the same requests of
// a port; so does this.
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
