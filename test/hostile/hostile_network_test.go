package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/bystander"
	"urdma/test/lab"
	"urdma/verbs"
)

// floodPort is the port number of a listener that nobody serves.
const floodPort = 7077

// networkTime is the duration of an attack on one wire.
func networkTime() time.Duration {
	if os.Getenv("URDMA_LONG") != "" {
		return 2 * time.Minute
	}
	return time.Second
}

// TestHostileNetwork: at each of two hosts an attacker sends packets that the other host might have sent, and worse
// ones, while connections are made and every byte is checked.
func TestHostileNetwork(t *testing.T) {
	build := buildDirectory(t)
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	wires := []lab.Wire{lab.UDP, lab.AFPacket, lab.UDP.V6(), lab.AFPacket.V6().WithWorkers(2), lab.RoCE,
		lab.RoCEFrames.WithWorkers(2)}
	if os.Getenv("URDMA_LONG") != "" {
		wires = append(wires, lab.AFXDP, lab.AFPacket.V6(), lab.RoCEFrames, lab.UDP.WithWorkers(2), lab.AFPacket.WithWorkers(2),
			lab.RoCE.WithWorkers(2))
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			l, a, b := hosts(t, build, w)
			s := newSiege(t, a, b)
			kind := "packet"
			if w.Protocol == lab.RoCE.Protocol {
				kind = "roce"
			}
			for i, n := range []*lab.Node{a, b} {
				other := []*lab.Node{b, a}[i]
				s.besiege(l, n.Net.Command, lab.Options{Env: os.Environ()}, kind+" veth0,"+other.Net.PID(), other.Address,
					netip.IPv6Unspecified().String())
			}
			s.holdsOut(networkTime())
		})
	}
}

// TestHostileMemif: a urdmad has three memifs, one to the well-behaved peer and two to hostile processes, a server
// and a client. They send false packets of connections with themselves, and falsify their rings.
func TestHostileMemif(t *testing.T) {
	wires := []lab.Wire{lab.Memif.WithWorkers(2)}
	if os.Getenv("URDMA_LONG") != "" {
		wires = append(wires, lab.Memif)
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) { hostileMemifs(t, w) })
	}
}

func hostileMemifs(t *testing.T, w lab.Wire) {
	l, a, b := hosts(t, buildDirectory(t), w)
	sockets := map[string]string{"client": filepath.Join(a.Directory(), "1.sock"),
		"server": filepath.Join(a.Directory(), "2.sock")}
	if err := a.StopDaemon(); err != nil {
		t.Fatal(err)
	}
	wire := filepath.Join(a.Directory(), "wire.sock")
	ports := []any{
		lab.Config{"vdev": "memif,role=server,socket=" + wire, "ipv4_address": a.Address + "/24"},
		lab.Config{"vdev": "memif,role=server,socket=" + sockets["client"], "ipv4_address": "198.18.7.1/24"},
		lab.Config{"vdev": "memif,role=client,socket=" + sockets["server"], "ipv4_address": "198.18.8.1/24"},
	}
	if err := a.Change("ports", ports); err != nil {
		t.Fatal(err)
	}
	if err := a.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	if err := a.WaitLink(lab.Patience); err != nil {
		t.Fatal(err)
	}
	s := newSiege(t, a, b)
	for role, net := range map[string]string{"client": "198.18.7.", "server": "198.18.8."} {
		own := func(argv ...string) []string { return argv }
		s.besiege(l, own, lab.Options{UID: a.UID, Env: os.Environ()}, role+" "+sockets[role], net+"1", net+"2")
		go s.calls(net + "2:7000")
	}
	s.holdsOut(networkTime())
}

func buildDirectory(t *testing.T) string {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	return build
}

func hosts(t *testing.T, build string, w lab.Wire) (l *lab.Lab, a, b *lab.Node) {
	t.Helper()
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if a, b, err = l.Join(w, nil); err != nil {
		t.Fatal(err)
	}
	return l, a, b
}

// netSiege is two hosts whose network is hostile.
type netSiege struct {
	*siege
	ctx       context.Context
	pair      *bystander.Pair
	flooded   *verbs.Client
	attackers []*lab.Process
	seed      uint64
	room      int // descriptors and mappings that a urdmad may have in addition during an attack
}

func newSiege(t *testing.T, a, b *lab.Node) *netSiege {
	t.Helper()
	s := &netSiege{siege: &siege{t: t, a: a, b: b}, seed: rand.Uint64(), room: 16}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), networkTime()+5*lab.Patience)
	t.Cleanup(cancel)
	t.Cleanup(s.capture())
	s.flooded = s.listens(a)
	return s
}

// listens starts a program at a host that has a listener and never serves it.
func (s *netSiege) listens(n *lab.Node) *verbs.Client {
	s.t.Helper()
	c, err := verbs.Open(n.Socket())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	everywhere := "0.0.0.0"
	if netip.MustParseAddr(n.Address).Is6() {
		everywhere = "::"
	}
	if _, err := c.Listen(net.JoinHostPort(everywhere, strconv.Itoa(floodPort))); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// besiege starts an attacker in the place that command determines.
func (s *netSiege) besiege(l *lab.Lab, command func(...string) []string, o lab.Options, end, victim, self string) {
	s.t.Helper()
	s.seed++
	program := filepath.Join(l.Dir, fmt.Sprint("attacker-", len(s.attackers))) // a file of its own: another attacker may just be starting
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		s.t.Fatalf("this program can't be copied: %v", err)
	}
	env := fmt.Sprintf("%s=%d %s %s %s %d", attackerEnv, s.seed, end, victim, self, floodPort)
	p, err := l.Start(o, command("env", env, program)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.attackers = append(s.attackers, p)
}

// calls connects to a hostile host again and again.
func (s *netSiege) calls(address string) {
	for s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		if c, err := s.flooded.Dial(ctx, address, nil); err == nil {
			time.Sleep(50 * time.Millisecond)
			c.Close()
		}
		cancel()
		time.Sleep(20 * time.Millisecond)
	}
}

// tell prints the log of each urdmad if something failed.
func (s *netSiege) tell() {
	for _, n := range s.nodes() {
		if s.t.Failed() {
			s.t.Logf("urdmad of %s:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 40))
		}
	}
}

// within reports whether the urdmads have little more than before.
func (s *netSiege) within(before, after []count) bool {
	for i, now := range after {
		was := before[i]
		if now.descriptors > was.descriptors+s.room || now.mappings > was.mappings+s.room ||
			now.residentKB > was.residentKB+2*roomKB {
			return false
		}
	}
	return true
}

// holdsOut checks that old connections continue, that new ones can be made, and that urdmad's resources don't grow.
func (s *netSiege) holdsOut(limit time.Duration) {
	s.t.Helper()
	var err error
	if s.pair, err = bystander.New(s.ctx, s.a.Socket(), s.b.Socket(), net.JoinHostPort(s.a.Address, "0"),
		s.seed); err != nil {
		s.t.Fatal(err)
	}
	defer s.pair.Close()
	defer s.tell()
	made := 0
	var before []count
	begin := time.Now()
	for time.Since(begin) < limit {
		from, to := s.a, s.b
		if made%2 == 1 {
			from, to = s.b, s.a
		}
		p, err := bystander.New(s.ctx, from.Socket(), to.Socket(), net.JoinHostPort(from.Address, "0"), s.seed+uint64(made))
		if err != nil {
			s.t.Fatalf("connection %d under attack: %v", made, err)
		}
		if !p.Advances(2, lab.Patience) {
			s.t.Errorf("connection %d under attack stands still", made)
		}
		err = p.Stop()
		p.Close()
		if err != nil {
			s.t.Fatalf("connection %d under attack: %v", made, err)
		}
		made++
		s.still()
		if before == nil && time.Since(begin) > limit/4 {
			before = s.counts()
		}
	}
	if err := s.pair.Stop(); err != nil {
		s.t.Error(err)
	}
	after := s.counts()
	// a client's resources disappear a moment after it
	for end := time.Now().Add(lab.Patience); before != nil &&
		!s.within(before, after); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("urdmad has %+v, had %+v", after, before)
			break
		}
		after = s.counts()
	}
	for _, p := range s.attackers {
		if !p.Running() || !strings.Contains(p.Output(), "sent") {
			s.t.Errorf("an attacker did nothing: %s", lab.Tail(p.Output(), 3))
		}
		s.t.Logf("attacker: %s", strings.TrimSpace(lab.Tail(p.Output(), 1)))
	}
	s.t.Logf("%d connections made; %d rounds of the well-behaved pair, the longest took %v; before %+v, after %+v", made,
		s.pair.Client.Rounds(), s.pair.Client.Longest(), before, after)
}
