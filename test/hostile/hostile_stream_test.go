package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/verbs"
)

// TestHostileStreams: hosts that belong to anybody send raw TCP to a tcp port: silent, slow, too many, wrong in every
// field. Connections of others are made and all their bytes checked, and no resources of the strangers remain.
func TestHostileStreams(t *testing.T) {
	build := buildDirectory(t)
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	wires := []lab.Wire{lab.TCP, lab.TCP.V6().WithWorkers(2)}
	if os.Getenv("URDMA_LONG") != "" {
		wires = append(wires, lab.TCP.V6(), lab.TCP.WithWorkers(2))
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			l, a, b := hosts(t, build, w)
			s := newSiege(t, a, b)
			s.room = 256 // connections without a request, and those that are served or end, see docs/SECURITY.md
			before := s.counts()
			alsoFlooded := s.listens(b)
			var takers []*taker
			for i, n := range []*lab.Node{a, b} {
				other := []*lab.Node{b, a}[i]
				takers = append(takers, newTaker(t, other))
				s.strangers(l, w, n, i, other, takers[i])
			}
			s.holdsOut(networkTime())
			for _, p := range s.attackers {
				p.Kill()
			}
			_ = s.flooded.Close()
			_ = alsoFlooded.Close()
			for _, x := range takers {
				x.end()
			}
			s.leaves(before)
		})
	}
}

// strangers starts an attacker at a host, with its own address, because limits apply to each source.
func (s *netSiege) strangers(l *lab.Lab, w lab.Wire, at *lab.Node, i int, victim *lab.Node, x *taker) {
	s.t.Helper()
	self := fmt.Sprintf("198.18.1.%d", 201+i)
	commands := [][]string{{"ip", "address", "add", self + "/24", "dev", "veth0"}}
	if w.IPv6 { // of another network than the well-behaved
		self = fmt.Sprintf("fd18:bad:%d::1", i)
		commands = [][]string{{"ip", "address", "add", self + "/64", "dev", "veth0", "nodad"}}
		if err := victim.Net.Run("ip", "-6", "route", "add", fmt.Sprintf("fd18:bad:%d::/64", i), "dev", "veth0"); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, c := range commands {
		if err := at.Net.Run(c...); err != nil {
			s.t.Fatal(err)
		}
	}
	s.seed++
	program := filepath.Join(l.Dir, fmt.Sprint("attacker-", len(s.attackers)))
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		s.t.Fatalf("this program can't be copied: %v", err)
	}
	p, err := l.Start(lab.Options{Env: os.Environ()}, at.Net.Command("env",
		fmt.Sprintf("%s=%d %s %s %d %s", streamEnv, s.seed, victim.Address, self, floodPort, x.port), program)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.attackers = append(s.attackers, p)
}

// leaves waits until nothing is left of the strangers' connections.
func (s *netSiege) leaves(before []count) {
	s.t.Helper()
	var now []count
	for end := time.Now().Add(2 * lab.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now = s.counts()
		flat := true
		for i, c := range now {
			b := before[i]
			// a capture may have begun in the meantime
			flat = flat && c.descriptors <= b.descriptors+4 && c.mappings <= b.mappings+1 &&
				c.residentKB <= b.residentKB+2*roomKB
		}
		if flat {
			s.t.Logf("urdmad before %+v, after %+v", before, now)
			return
		}
	}
	s.t.Errorf("urdmad has %+v, had %+v", now, before)
}

const lentLen = 64 << 10

// taker is a program that accepts every request and offers memory; it has other memory that nobody may write.
type taker struct {
	t            *testing.T
	c            *verbs.Client
	l            *verbs.Listener
	port         string
	room         chan struct{} // a token for each connection
	wait         sync.WaitGroup
	guarded      []byte
	mu           sync.Mutex
	taken, wrong int
}

func newTaker(t *testing.T, n *lab.Node) *taker {
	t.Helper()
	c, err := verbs.Open(n.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	x := &taker{t: t, c: c, room: make(chan struct{}, 64)}
	if x.l, err = c.Listen(net.JoinHostPort(n.Address, "0")); err != nil {
		t.Fatal(err)
	}
	x.port = fmt.Sprint(x.l.Addr().Port())
	x.guarded = bytes.Repeat([]byte{0xa5}, lentLen)
	x.wait.Add(1)
	go x.run()
	return x
}

func (x *taker) run() {
	defer x.wait.Done()
	for {
		r, err := x.l.Next(x.t.Context())
		if err != nil {
			return
		}
		x.room <- struct{}{}
		x.wait.Add(1)
		go func() {
			defer x.wait.Done()
			defer func() { <-x.room }()
			x.serve(r)
		}()
	}
}

// serve offers memory to a stranger until it leaves.
func (x *taker) serve(r *verbs.Request) {
	var lent, guarded, box *verbs.MR
	conn, err := r.Accept(x.t.Context(), &verbs.ConnOptions{Prepare: func(c *verbs.Conn) (err error) {
		for _, m := range []struct {
			mr     **verbs.MR
			access verbs.Access
		}{{&lent, verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite}, {&guarded, verbs.LocalWrite | verbs.RemoteRead},
			{&box, verbs.LocalWrite}} {
			if *m.mr, err = c.PD().AllocMemory(lentLen, m.access); err != nil {
				return err
			}
		}
		copy(guarded.Bytes(), x.guarded)
		b := binary.LittleEndian.AppendUint64(nil, lent.Addr())
		b = binary.LittleEndian.AppendUint64(b, guarded.Addr())
		b = binary.LittleEndian.AppendUint32(b, lent.RKey())
		if err := c.SetPrivateData(binary.LittleEndian.AppendUint32(b, guarded.RKey())); err != nil {
			return err
		}
		for range 4 {
			if err := c.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{box.SGE(0, lentLen)}}); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return // the stranger is gone
	}
	limit := time.NewTimer(3 * time.Second)
	defer limit.Stop()
	select {
	case <-conn.Done():
	case <-limit.C:
	}
	x.mu.Lock()
	x.taken++
	if !bytes.Equal(guarded.Bytes(), x.guarded) {
		x.wrong++
	}
	x.mu.Unlock()
	_ = conn.Close()
}

// end stops the taker and returns its observations.
func (x *taker) end() {
	x.t.Helper()
	_ = x.l.Close()
	x.wait.Wait() // serve looks into memory of the client
	_ = x.c.Close()
	if x.taken == 0 || x.wrong > 0 {
		x.t.Errorf("%d connections of strangers', %d of them wrote where they had no right to", x.taken, x.wrong)
	}
	x.t.Log(strings.TrimSpace(fmt.Sprintln(x.taken, "connections of strangers'")))
}
