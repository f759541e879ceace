package umad

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"urdma/topology"
	"urdma/urdmad/attach/fabric"
)

// Server has the subnet, and the files that programs have opened.
type Server struct {
	// Ports returns the snapshot from which MADs are answered.
	Ports func() []fabric.Port
	// Changed is called with a device's new state when it changes. It must not call the Server.
	Changed func(device int, shown fabric.Shown)

	mu     sync.Mutex
	subnet *fabric.Subnet
	shown  []fabric.Shown
	agents map[uint32]*agent // by number
	last   uint32            // number
}

// New makes the subnet. ShowAnew reports its state for sysfs. host is the name of the machine, t
// the topology for fabric.New.
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

// Nodes returns the names of switches and channel adapters.
func (s *Server) Nodes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Nodes()
}

// ShowAnew reports the state of all devices, for sysfs.
func (s *Server) ShowAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.shown)
	s.update()
}

// show reports changes.
func (s *Server) show() {
	for i := range s.shown {
		if now := s.subnet.Shown(i); now != s.shown[i] {
			s.shown[i] = now
			s.Changed(i, now)
		}
	}
	s.deliver(nil)
}

// Disabled reports whether a device's port was disabled.
func (s *Server) Disabled(device int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Shown(device).Disabled
}

// Enable undoes a disabling of a device's port.
func (s *Server) Enable(device int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subnet.Enable(device)
	s.show()
}

// Inject adds errors to a port's counters, like fabric.Subnet's method.
func (s *Server) Inject(port string, errors fabric.Errors, look bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Inject(port, errors, look)
}

// Injected returns the injected errors of a device's port.
func (s *Server) Injected(device int) fabric.Errors {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subnet.Injected(device)
}

// Update updates the subnet after a port's link has changed.
func (s *Server) Update() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.update()
}

func (s *Server) update() {
	s.subnet.Update(s.Ports())
	s.show()
}

// Serve serves an open file until the program closes it: the umad of a device's port, or with
// manager its issm, which claims that a subnet manager runs there. closing gets unexpected
// descriptors.
func (s *Server) Serve(c *net.UnixConn, device int, manager bool, closing func(io.Closer)) error {
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

// lower returns the half of a transaction ID that the program chose.
func lower(m fabric.MAD) uint32 { return uint32(m.Transaction()) }

// send sends a MAD that an agent's program has written.
func (s *Server) send(a *agent, h header, m fabric.MAD) {
	s.update()
	if !m.Response() {
		m.SetTransaction(uint64(a.number)<<32 | uint64(lower(m)))
	}
	arrived := s.subnet.Send(a.file.device, fabric.Packet{DLID: h.lid, MAD: m})
	s.show() // before the program can read the result
	if !m.Response() && h.timeout > 0 && len(a.waiting) < maxWaiting {
		s.await(a, h, m)
	}
	s.deliver(arrived)
}

// await returns the request to its program if no answer has come within all its tries. Nothing is
// sent again, because the simulated subnet loses nothing.
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

// deliver passes arrived MADs and the subnet's traps to agents. A request that no agent wants is
// answered as the kernel answers it, and the resulting MADs are delivered too.
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

// answer passes an answer to the agent that waits for it.
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
