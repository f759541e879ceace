package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/bystander"
	"urdma/test/lab"
)

// TestHostileClients: hostile clients send, overwrite shared memory and die. A well-behaved pair receives every byte
// correctly, and no resources of the clients remain.
func TestHostileClients(t *testing.T) {
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	seed, err := strconv.ParseUint(os.Getenv("URDMA_SEED"), 0, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	limit := 1500 * time.Millisecond
	if os.Getenv("URDMA_LONG") != "" {
		limit = 2 * time.Minute
	}
	full := lab.Loopback // the longest segments fill a frame only on loopback
	full.MTU = 4096
	wires := []lab.Wire{full, lab.Memif, lab.Loopback.WithWorkers(2), lab.Memif.WithWorkers(2)}
	if os.Getenv("URDMA_LONG") != "" { // no client sees more of IPv6 than its length; TestHostileNetwork has it
		wires = append(wires, lab.Loopback.V6(), lab.Memif.V6())
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			t.Logf("seed %d (URDMA_SEED sets one)", seed)
			l, err := lab.New(build)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			a, b, err := l.Join(w, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := &siege{t: t, a: a, b: b, r: rand.New(rand.NewPCG(seed, 2)), limit: limit}
			s.run(seed)
		})
	}
}

// siege is one urdmad or two, with hostile clients at each.
type siege struct {
	t     *testing.T
	a, b  *lab.Node
	r     *rand.Rand
	limit time.Duration
	kills int
}

// nodes returns the two hosts of a wire; for loopback, the only one.
func (s *siege) nodes() []*lab.Node {
	if s.a == s.b {
		return []*lab.Node{s.a}
	}
	return []*lab.Node{s.a, s.b}
}

func (s *siege) run(seed uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), s.limit+5*lab.Patience)
	defer cancel()
	endCaptures := s.capture()
	pair, err := bystander.New(ctx, s.a.Socket(), s.b.Socket(), net.JoinHostPort(s.a.Address, "7801"), seed)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pair.Close()
	s.attack(pair, s.limit/5) // afterwards urdmad has everything that it never frees
	s.clients()
	before := s.counts()
	s.attack(pair, s.limit*4/5)
	s.settles(before)
	if err := pair.Stop(); err != nil {
		s.t.Error(err)
	}
	endCaptures()
	s.t.Logf("%d hostile processes killed; %d rounds of the well-behaved pair, the longest took %v", s.kills,
		pair.Client.Rounds(), pair.Client.Longest())
	s.still()
}

// capture runs a capture of each urdmad until the returned function is called.
func (s *siege) capture() (end func()) {
	s.t.Helper()
	var captures []*lab.Process
	for _, n := range s.nodes() {
		p, err := n.Start(n.Program("urdma"), "capture", "--all", "-o", "/dev/null")
		if err != nil {
			s.t.Fatal(err)
		}
		captures = append(captures, p)
	}
	return func() {
		s.t.Helper()
		for _, p := range captures {
			p.Signal(syscall.SIGINT)
			if err := p.Wait(lab.Patience); err != nil || !capturedSome.MatchString(p.Output()) {
				s.t.Errorf("a capture ended with %v: %s", err, p.Output())
			}
		}
	}
}

var capturedSome = regexp.MustCompile(`[1-9][0-9]* packets`)

// attack keeps two hostile clients running at each urdmad, each for at most half a second.
func (s *siege) attack(pair *bystander.Pair, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		var clients []*exec.Cmd
		for _, n := range s.nodes() {
			for range 2 {
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), spell(s.r.Uint64(), n.Socket(), n.Address, s.a.Address, pair.Server.Offered()))
				c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				if err := c.Start(); err != nil {
					s.t.Fatal(err)
				}
				clients = append(clients, c)
			}
		}
		for _, c := range clients {
			time.Sleep(time.Duration(s.r.IntN(500)) * time.Millisecond)
			_ = c.Process.Kill()
			_ = c.Wait()
			s.kills++
		}
		s.still()
	}
}

// still fails if a urdmad has ended.
func (s *siege) still() {
	s.t.Helper()
	for _, n := range s.nodes() {
		if !n.Daemon.Running() {
			s.t.Fatalf("urdmad of %s is not running:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 60))
		}
	}
}

// count is the resources of a urdmad.
type count struct{ descriptors, mappings, threads, residentKB int }

func (s *siege) counts() (out []count) {
	for _, n := range s.nodes() {
		out = append(out, s.count(n))
	}
	return out
}

func (s *siege) count(n *lab.Node) (c count) {
	proc := fmt.Sprintf("/proc/%d/", n.Daemon.PID())
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.t.Fatal(err)
	}
	c.descriptors = len(fds)
	if c.mappings, err = n.ClientMemory(); err != nil {
		s.t.Fatal(err)
	}
	status, _ := os.ReadFile(proc + "status")
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "Threads: %d", &c.threads)
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &c.residentKB)
	}
	return c
}

// Memory and threads that a urdmad may have in addition, because Go's heap varies.
const (
	roomKB      = 64 << 10
	roomThreads = 8
)

// settles waits until nothing is left of the hostile clients.
func (s *siege) settles(before []count) {
	s.t.Helper()
	var now []count
	for end := time.Now().Add(lab.Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now = s.counts()
		flat := true
		for i, c := range now {
			b := before[i]
			flat = flat && c.descriptors <= b.descriptors && c.mappings <= b.mappings && c.threads <= b.threads+roomThreads &&
				c.residentKB <= b.residentKB+roomKB
		}
		if flat {
			s.t.Logf("urdmad before %+v, after %+v", before, now)
			s.clients()
			return
		}
	}
	s.t.Errorf("urdmad has %+v, had %+v", now, before)
}

// clients waits until only the well-behaved clients are left.
func (s *siege) clients() {
	s.t.Helper()
	for _, n := range s.nodes() {
		out, want := "", 2/len(s.nodes())
		for end := time.Now().Add(lab.Patience); strings.Count(out, `"command"`) != want; time.Sleep(50 * time.Millisecond) {
			var err error
			if out, err = n.Urdma("show", "client", "--json"); err != nil {
				s.t.Fatal(err)
			}
			if time.Now().After(end) {
				s.t.Fatalf("urdmad of %s has others than %d clients:\n%s", n.Name, want, out)
			}
		}
	}
}
