package umad

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"

	"urdma/urdmad/attach/fabric"
)

// cable leads from the only port of a urdmad to that of another.
type cable struct {
	us      netip.Addr
	to      *Server
	trusted bool

	mu   sync.Mutex
	lose func(fabric.MAD) bool
	done sync.WaitGroup
}

var everybody = netip.MustParseAddr("224.0.0.1")

func (c *cable) Hosts() []Host { return []Host{{0, everybody}} }

func (c *cable) Send(to Host, m fabric.MAD) {
	c.mu.Lock()
	lost := c.lose != nil && c.lose(m)
	c.mu.Unlock()
	if !lost {
		m = bytes.Clone(m)
		c.done.Go(func() { c.to.Arrived(Host{0, c.us}, m, c.trusted) })
	}
}

func (c *cable) losing(lose func(fabric.MAD) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = lose
}

// joined is two urdmads of a port each, LIDs 0x10 and 0x20, with a cable between them.
func joined(t *testing.T) (a, b *Server, ab, ba *cable) {
	t.Helper()
	one := func(name string, guid uint64, lid uint16) *Server {
		ports := []fabric.Port{{Name: "urdma0", GUID: guid, LID: lid, MTU: 4200, Up: true, Wire: true, Counters: fabric.Counters{TxPackets: uint64(lid)}}}
		s, err := New(name, func() []fabric.Port { return ports }, nil, func(int, fabric.Shown) {})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b = one("here", 1, 0x10), one("there", 2, 0x20)
	ab, ba = &cable{us: netip.MustParseAddr("10.0.0.1"), to: b}, &cable{us: netip.MustParseAddr("10.0.0.2"), to: a}
	a.Reach(ab)
	b.Reach(ba)
	return a, b, ab, ba
}

func has(s *Server, name string) bool {
	for _, n := range s.Nodes() {
		if n == name {
			return true
		}
	}
	return false
}

// TestPeers: who opens a file finds the other urdmad's port, programs of both talk to each other, and
// counters are asked of the port that counted.
func TestPeers(t *testing.T) {
	a, b, ab, _ := joined(t)
	client := open(t, a, 0, false)
	client.ioctl(ioctlEnablePKey, nil)
	server := open(t, b, 0, false)
	server.ioctl(ioctlEnablePKey, nil)
	if !has(a, "there urdma0") || !has(b, "here urdma0") {
		t.Fatalf("nodes %q and %q", a.Nodes(), b.Nodes())
	}
	v := server.agent(vendor, 1<<fabric.MethodGet)
	c := client.agent(vendor, 0)
	n := 0
	ab.losing(func(m fabric.MAD) bool { n++; return m.Class() == vendor && n == 1 }) // the next try has to make up for it
	client.retry(c, 0x20, 50, request(vendor, fabric.MethodGet, 0, 5))
	h, m := server.read()
	if h.id != v || h.lid != 0x10 || m.Method() != fabric.MethodGet {
		t.Fatalf("%+v %x", h, m[:24])
	}
	m[3] |= fabric.MethodResponse
	server.write(v, h.lid, 0, m)
	if h, m := client.read(); h.id != c || h.lid != 0x20 || h.status != 0 || lower(m) != 5 {
		t.Errorf("%+v %x", h, m[:24])
	}
	const portCountersExtended, txPackets = 0x1d, 64 + 24
	perf := client.agent(fabric.ClassPerf, 0)
	ask := request(fabric.ClassPerf, fabric.MethodGet, portCountersExtended, 6)
	ask[64+1] = 1
	client.write(perf, 0x20, 60000, ask)
	if _, m := client.read(); m[5] != 0 || m[txPackets+7] != 0x20 {
		t.Errorf("counters of the other urdmad's port: %x", m[:120])
	}
	ask[3] = fabric.MethodSet
	client.write(perf, 0x20, 60000, ask)
	if _, m := client.read(); m[5] == 0 {
		t.Errorf("whom the other urdmad doesn't trust may clear its counters: %x", m[:120])
	}
}

// retry is write for a request that is repeated.
func (p *program) retry(id uint32, lid uint16, timeout uint32, m []byte) {
	p.t.Helper()
	b := make([]byte, newHeader)
	native.PutUint32(b, id)
	native.PutUint32(b[8:], timeout)
	native.PutUint32(b[12:], maxRetries)
	b[28], b[29] = byte(lid>>8), byte(lid)
	if _, err := p.conn.Write(append(b, m...)); err != nil {
		p.t.Fatal(err)
	}
}

// TestSilentPeer: the link of a peer that no longer answers is down, and comes back with it.
func TestSilentPeer(t *testing.T) {
	a, _, ab, ba := joined(t)
	up := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.peers.list) == 1 && a.peers.list[0].Up
	}
	ask := func() {
		a.ask()
		ab.done.Wait()
		ba.done.Wait()
	}
	ask()
	if !up() {
		t.Fatalf("nodes %q", a.Nodes())
	}
	ab.losing(func(fabric.MAD) bool { return true })
	for range downAfter {
		ask()
	}
	if !up() {
		t.Error("down after questions that may have been lost")
	}
	ask()
	if up() {
		t.Error("a peer that is silent is up")
	}
	ab.losing(nil)
	ask()
	if !up() {
		t.Error("it stays down when it answers again")
	}
}

// FuzzArrived: nothing that a host sends makes urdmad fail, or itself a peer without being asked.
func FuzzArrived(f *testing.F) {
	for _, m := range fabric.PeerRequests() {
		f.Add([]byte(m), false)
		m[3] |= fabric.MethodResponse
		f.Add([]byte(m), true)
	}
	f.Add([]byte(request(fabric.ClassPerf, fabric.MethodSet, 0x12, 1)), true)
	f.Add([]byte(request(fabric.ClassDirected, fabric.MethodSet, 0x15, 1)), true)
	f.Add([]byte(request(vendor, fabric.MethodGet, 1, 1)), true)
	f.Fuzz(func(t *testing.T, m []byte, trusted bool) {
		a, _, ab, _ := joined(t)
		before := len(a.Nodes())
		a.Arrived(Host{0, ab.us}, bytes.Clone(m), trusted)
		if len(a.Nodes()) != before {
			t.Error("who sends an answer to nothing is in the subnet")
		}
	})
}

// TestOneAnswer: a question has one answer of each host, whatever comes behind it: each that is
// another has the whole subnet managed anew.
func TestOneAnswer(t *testing.T) {
	a, _, ab, ba := joined(t)
	var answer fabric.MAD
	ba.losing(func(m fabric.MAD) bool {
		if m.Response() && m[17] == portInfo {
			answer = bytes.Clone(m)
		}
		return false
	})
	up := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.peers.list) == 1 && a.peers.list[0].Up
	}
	ask := func() {
		a.ask()
		ab.done.Wait()
		ba.done.Wait()
	}
	ask() // it is a peer from then on
	ask()
	if !up() || answer == nil {
		t.Fatalf("nodes %q", a.Nodes())
	}
	const physicalState = 64 + 33
	answer[physicalState] = 2<<4 | 2 // polling: the link is down
	a.Arrived(Host{0, ba.us}, answer, false)
	if !up() {
		t.Error("a second answer to one question counts")
	}
	ask()
	if !up() {
		t.Error("the next answer does not count")
	}
}

const portInfo = 0x15
