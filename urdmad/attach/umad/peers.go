package umad

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"urdma/urdmad/attach/fabric"
)

// Host is another host that a device's port may reach; its Addr can be a group of hosts.
type Host struct {
	Device int
	Addr   netip.Addr
}

// Wires is how MADs get to other hosts' urdmads. Any of them may be lost.
type Wires interface {
	// Hosts are those that there may be: they have answered something, or somebody has
	// named them.
	Hosts() []Host
	// Send does not wait.
	Send(to Host, m fabric.MAD)
}

// peers are the ports of other urdmads. They are asked for when a program opens a file, and
// now and then as long as one sends.
type peers struct {
	wires Wires
	at    map[Host]int // index in list
	list  []fabric.Peer
	hosts []Host // of list
	// silent is how often each was asked since it answered last.
	silent  []int
	said    map[saying]bool       // since the last question
	partly  map[Host]*fabric.Peer // of which not all has been learnt
	met     []Host                // who asked us, the last ones
	asked   time.Time
	numbers [2]uint32     // of the last questions, the last first; no stranger can guess them
	news    chan struct{} // closed when something was learnt
}

// saying is what a peer says in answer to a question: an attribute. It says each once, since what
// is new has the whole subnet managed anew.
type saying struct {
	peer      int
	attribute uint16
}

const (
	// askEvery is how old what is known of other urdmads gets while a program sends.
	askEvery = 2 * time.Second
	// askPatience bounds how long a program that opens a file waits for others, asked askTries times.
	askPatience = 200 * time.Millisecond
	askTries    = 2
	// downAfter is how many questions in a row a peer leaves without an answer before its link counts as down.
	downAfter = 3
	maxPeers  = 250
	maxMet    = 64
)

func newPeers(w Wires) peers {
	return peers{wires: w, at: map[Host]int{}, partly: map[Host]*fabric.Peer{}, said: map[saying]bool{}, news: make(chan struct{})}
}

// Reach has the subnet include what wires reach; before the first file is served.
func (s *Server) Reach(w Wires) { s.peers = newPeers(w) }

// find asks for other urdmads, unless that was done lately, and waits for those that have
// answered before; the first time for all that answer soon.
func (s *Server) find() {
	s.mu.Lock()
	wires, first := s.peers.wires, s.peers.asked.IsZero()
	old := time.Since(s.peers.asked) >= askEvery
	s.mu.Unlock()
	if wires == nil || !old {
		return
	}
	for range askTries {
		if !s.ask() || s.heard(askPatience/askTries, first) {
			return
		}
	}
}

// ask asks all hosts there may be for their ports; false: there are none.
func (s *Server) ask() bool {
	hosts := s.peers.wires.Hosts() // takes a moment
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.peers
	p.asked = time.Now()
	p.numbers = [2]uint32{number(), p.numbers[0]}
	clear(p.said)
	asked := map[Host]bool{}
	for _, list := range [][]Host{hosts, p.hosts, p.met} {
		for _, h := range list {
			if !asked[h] {
				asked[h] = true
				p.question(h)
			}
		}
	}
	for i := range p.list {
		if p.silent[i]++; p.silent[i] > downAfter {
			p.list[i].Up = false
		}
	}
	s.subnet.UpdatePeers(p.list)
	s.show()
	return len(asked) > 0
}

func number() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.NativeEndian.Uint32(b[:])
}

// question asks a host. The upper half of the transaction id, which is an agent's
// number elsewhere, is 0.
func (p *peers) question(h Host) {
	for _, m := range fabric.PeerRequests() {
		m.SetTransaction(uint64(p.numbers[0]))
		p.wires.Send(h, m)
	}
}

// heard waits until all peers that are up have answered, with all set as long as it may.
func (s *Server) heard(patience time.Duration, all bool) bool {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		s.mu.Lock()
		news, waiting := s.peers.news, all
		for i := range s.peers.list {
			waiting = waiting || s.peers.list[i].Up && s.peers.silent[i] > 0
		}
		s.mu.Unlock()
		if !waiting {
			return true
		}
		select {
		case <-news:
		case <-limit.C:
			return false
		}
	}
}

// askAgain asks beside a program that sends, where what is known is old.
func (s *Server) askAgain() {
	if p := &s.peers; p.wires != nil && time.Since(p.asked) >= askEvery {
		p.asked = time.Now()
		go s.ask()
	}
}

// Arrived takes a MAD that came from a host. Who is not trusted may not change anything.
func (s *Server) Arrived(from Host, m fabric.MAD, trusted bool) {
	if len(m) < fabric.Size {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.peers.at[from]
	if !known {
		i = -1
	}
	switch {
	case m.Response() && m.Transaction()>>32 == 0:
		s.learn(from, m)
	case m.Response():
		s.answered(i, m)
	case m.Class() == fabric.ClassPerf && m.Method() != fabric.MethodGet && !trusted:
		if r := fabric.Unclaimed(m); r != nil {
			s.peers.wires.Send(from, r)
		}
	default:
		s.asked(from, i, m)
	}
}

// asked answers what a host asks, or gives it to an agent.
func (s *Server) asked(from Host, peer int, m fabric.MAD) {
	if peer < 0 {
		s.meet(from)
	}
	s.update()
	answer, arrived := s.subnet.Arrive(from.Device, peer, m)
	if answer != nil {
		s.peers.wires.Send(from, answer)
	}
	s.deliver(arrived)
}

// meet notes a host that asks, and asks it in turn while programs have files open.
func (s *Server) meet(h Host) {
	p := &s.peers
	for _, old := range p.met {
		if old == h {
			return
		}
	}
	if len(p.met) == maxMet {
		p.met = append(p.met[:0], p.met[1:]...)
	}
	p.met = append(p.met, h)
	if s.files > 0 {
		if p.asked.IsZero() {
			p.numbers[0] = number()
		}
		p.question(h)
	}
}

// learn takes the answer to a question of ours.
func (s *Server) learn(from Host, m fabric.MAD) {
	p := &s.peers
	if n := lower(m); n == 0 || n != p.numbers[0] && n != p.numbers[1] {
		return
	}
	i, known := p.at[from]
	of := saying{i, binary.BigEndian.Uint16(m[16:])}
	switch {
	case known && p.said[of]:
		return
	case known:
		p.said[of] = true
		p.list[i].Learn(m)
		p.silent[i] = 0
	case p.learnNew(from, m):
	default:
		return
	}
	s.subnet.UpdatePeers(p.list)
	s.show()
	close(p.news)
	p.news = make(chan struct{})
}

// learnNew is learn of a host that is not in the list, and reports whether it is now.
func (p *peers) learnNew(from Host, m fabric.MAD) bool {
	if len(p.list) == maxPeers || p.partly[from] == nil && len(p.partly) >= maxPeers {
		return false
	}
	n := p.partly[from]
	if n == nil {
		n = &fabric.Peer{Device: from.Device}
		p.partly[from] = n
	}
	if n.Learn(m); !n.Known() {
		return false
	}
	delete(p.partly, from)
	p.at[from] = len(p.list)
	p.list, p.hosts, p.silent = append(p.list, *n), append(p.hosts, from), append(p.silent, 0)
	return true
}
