package umad

import (
	"encoding/binary"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"urdma/topology"
	"urdma/urdmad/attach/fabric"
)

// Server has the subnet, and the files that programs have opened.
type Server struct {
	// Ports takes the snapshot that a MAD is answered from.
	Ports func() []fabric.Port
	// Changed is told what is to be shown of a device's port, where that is new. It must not
	// call the Server.
	Changed func(device int, shown fabric.Shown)

	mu     sync.Mutex
	subnet *fabric.Subnet
	shown  []fabric.Shown
	agents map[uint32]*agent // by number
	last   uint32            // number
}

// New makes the subnet, of which sysfs is told by ShowAnew. host is the name of the machine, t
// what fabric.New makes of it.
func New(host string, ports func() []fabric.Port, t *topology.Topology, changed func(int, fabric.Shown)) (*Server,
	error) {
	now := ports()
	subnet, err := fabric.New(host, now, t)
	if err != nil {
		return nil, err
	}
	return &Server{Ports: ports, Changed: changed, subnet: subnet, shown: make([]fabric.Shown, len(now)),
		agents: map[uint32]*agent{}}, nil
}

// Nodes are the names of switches and channel adapters.
func (s *Server) Nodes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Nodes()
}

// ShowAnew tells of everything that sysfs is to show.
func (s *Server) ShowAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.shown)
	s.update()
}

// show tells of what has changed.
func (s *Server) show() {
	for i := range s.shown {
		if now := s.subnet.Shown(i); now != s.shown[i] {
			s.shown[i] = now
			s.Changed(i, now)
		}
	}
	s.deliver(nil)
}

// Disabled reports whether somebody has disabled a device's port.
func (s *Server) Disabled(device int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Shown(device).Disabled
}

// Enable undoes what has disabled a device's port.
func (s *Server) Enable(device int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subnet.Enable(device)
	s.show()
}

// Inject adds errors to what a port counts, as fabric.Subnet does.
func (s *Server) Inject(port string, errors fabric.Errors, look bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Inject(port, errors, look)
}

// Injected are the errors that a device's port has on purpose.
func (s *Server) Injected(device int) fabric.Errors {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Injected(device)
}

// Update has the subnet follow its ports' links.
func (s *Server) Update() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update()
}

func (s *Server) update() {
	s.subnet.Update(s.Ports())
	s.show()
}

// Serve serves an open file until the program closes it: the umad of a device's port, or
// with manager set its issm, whose opening says that a subnet manager runs there.
// Descriptors that came unasked for go to closing.
func (s *Server) Serve(c *net.UnixConn, device int, manager bool, closing func(*os.File)) error {
	if manager {
		s.claim(device, (*fabric.Subnet).Claim)
		defer s.claim(device, (*fabric.Subnet).Release)
	}
	f := &file{s: s, conn: c, device: device, closing: closing}
	err := f.serve()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range f.agents {
		if a != nil {
			s.unregister(a)
		}
	}
	return err
}

func (s *Server) claim(device int, how func(*fabric.Subnet, int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s.subnet, device)
	s.show()
}

// lower is the half of a transaction id that is the program's own.
func lower(m fabric.MAD) uint32 { return uint32(m.Transaction()) }

// send has an agent send what its program has written.
func (s *Server) send(a *agent, h header, m fabric.MAD) {
	s.update()
	if !m.Response() {
		m.SetTransaction(uint64(a.number)<<32 | uint64(lower(m)))
	}
	arrived := s.subnet.Send(a.file.device, fabric.Packet{DLID: h.lid, MAD: m})
	s.show() // before its program can look
	if !m.Response() && h.timeout > 0 && len(a.waiting) < maxWaiting {
		s.await(a, h, m)
	}
	s.deliver(arrived)
}

// await gives the request back to its program when no answer has come within all its tries. None
// is sent again: nothing is lost on the way.
func (s *Server) await(a *agent, h header, m fabric.MAD) {
	id := lower(m)
	if old := a.waiting[id]; old != nil {
		old.Stop()
	}
	patience := time.Duration(h.timeout) * time.Millisecond * time.Duration(1+min(h.retries, maxRetries))
	var timer *time.Timer
	timer = time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.waiting[id] == timer {
			delete(a.waiting, id)
			a.file.timedOut(a, h, m)
		}
	})
	a.waiting[id] = timer
}

const maxRetries = 1000

// deliver gives agents what arrived, and what the subnet has sent by itself. A request that no agent wants is
// answered as the kernel answers it, and what comes of that is delivered too.
func (s *Server) deliver(list []fabric.Delivery) {
	for {
		if list = append(list, s.subnet.Take()...); len(list) == 0 {
			return
		}
		d := list[0]
		list = list[1:]
		if d.MAD.Response() {
			s.answer(d)
			continue
		}
		if a := s.wanting(d); a != nil {
			a.file.receive(a, d)
		} else if r := fabric.Unclaimed(d.MAD); r != nil {
			list = slices.Concat(list, s.subnet.Send(d.Device, fabric.Packet{DLID: d.SLID, MAD: r}))
		}
	}
}

// answer gives an answer to the agent that waits for it.
func (s *Server) answer(d fabric.Delivery) {
	a := s.agents[uint32(d.MAD.Transaction()>>32)]
	if a == nil || a.file.device != d.Device || a.class != d.MAD.Class() {
		return
	}
	if r := a.waiting[lower(d.MAD)]; r != nil {
		r.Stop()
		delete(a.waiting, lower(d.MAD))
	}
	a.file.receive(a, d)
}

func (s *Server) wanting(d fabric.Delivery) *agent {
	for _, a := range s.agents {
		if a.file.device == d.Device && a.wants(d.MAD) {
			return a
		}
	}
	return nil
}

var native = binary.NativeEndian
