package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"urdma/test/bystander"
	"urdma/test/lab"
)

func TestMain(m *testing.M) {
	bystander.Main()
	os.Exit(m.Run())
}

// length returns the duration of the soak test.
func length(t *testing.T) time.Duration {
	if s := os.Getenv("URDMA_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("URDMA_SOAK: %v", err)
		}
		return d
	}
	if os.Getenv("URDMA_LONG") != "" {
		return 3 * time.Minute
	}
	return 4 * time.Second
}

func TestSoak(t *testing.T) {
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	seed, err := strconv.ParseUint(os.Getenv("URDMA_SEED"), 0, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (URDMA_SEED sets one)", seed)
	t.Setenv("GOGC", "100") // for the urdmads: garbage is collected soon
	wires := []lab.Wire{lab.Memif, lab.UDP.WithWorkers(2)}
	if os.Getenv("URDMA_LONG") != "" {
		wires = append(wires, lab.TCP.WithWorkers(2), lab.Memif.WithWorkers(2))
	}
	for _, w := range wires {
		t.Run(w.Name, func(t *testing.T) { soakOver(t, build, w, seed) })
	}
}

func soakOver(t *testing.T, build string, w lab.Wire, seed uint64) {
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	a, b, err := l.Join(w, lab.Config{"death_timeout_ms": 20000}) // the programs fill the processors
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{t: t, seed: seed, nodes: [2]*lab.Node{a, b}}
	s.run(length(t))
	for _, n := range s.nodes {
		if err := n.StopDaemon(); err != nil {
			t.Error(err)
		}
	}
}

// soak is two urdmads with all kinds of programs.
type soak struct {
	t     *testing.T
	seed  uint64
	nodes [2]*lab.Node

	connects, kills, programs atomic.Int64
	port                      atomic.Int64
}

// run alternates between traffic and counting. It counts first after two rounds of traffic, when urdmad has
// everything that it never frees.
func (s *soak) run(length time.Duration) {
	ctx, cancel := context.WithCancel(context.Background()) // counting has no time limit
	defer cancel()
	pair, err := bystander.New(ctx, s.nodes[0].Socket(), s.nodes[1].Socket(), s.nodes[0].Address+":7801", s.seed)
	if err != nil {
		s.t.Fatal(err)
	}
	defer pair.Close()
	rounds := max(4, int(length/(30*time.Second)))
	var table [][2]usage
	for i := range rounds {
		s.traffic(ctx, uint64(i), length/time.Duration(rounds))
		now := s.settled(table)
		if s.t.Failed() {
			return
		}
		table = append(table, now)
		s.t.Logf("round %d: %+v; %d connections, %d programs, %d killed", i, now, s.connects.Load(), s.programs.Load(),
			s.kills.Load())
	}
	s.flat(table[2:])
	if err := pair.Stop(); err != nil {
		s.t.Error(err)
	}
	s.t.Logf("%d connections within programs, %d programs, %d of them killed; %d rounds of the checked pair, the longest took %v",
		s.connects.Load(), s.programs.Load(), s.kills.Load(), pair.Client.Rounds(), pair.Client.Longest())
}

// traffic runs several programs of each kind for a while.
func (s *soak) traffic(ctx context.Context, round uint64, length time.Duration) {
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for i, work := range []func(context.Context, *rand.Rand) error{s.connection, s.connection, s.program, s.program,
		s.look} {
		r := rand.New(rand.NewPCG(s.seed, round<<8|uint64(i)))
		wg.Go(func() {
			for time.Now().Before(end) && !s.t.Failed() {
				if err := once(ctx, r, work); err != nil {
					s.t.Errorf("round %d, worker %d: %v", round, i, err)
				}
			}
		})
	}
	wg.Wait()
}

// once lets a worker do one thing, which takes seconds unless something hangs.
func once(ctx context.Context, r *rand.Rand, work func(context.Context, *rand.Rand) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return work(ctx, r)
}

// either draws two ends for a connection, rarely of the same host.
func (s *soak) either(r *rand.Rand) (server, client *lab.Node) {
	i := r.IntN(2)
	if r.IntN(3) == 0 {
		return s.nodes[i], s.nodes[i]
	}
	return s.nodes[i], s.nodes[1-i]
}

// look reads urdmad's state in all available ways.
func (s *soak) look(_ context.Context, r *rand.Rand) error {
	n := s.nodes[r.IntN(2)]
	kinds := [][]string{{"status"}, {"show", "qp"}, {"show", "mr", "--json"}, {"show", "connection"}, {"show", "client"},
		{"capture", "-o", "/dev/null"}}
	argv := kinds[r.IntN(len(kinds))]
	if argv[0] != "capture" {
		_, err := n.Urdma(argv...)
		return err
	}
	p, err := n.Start(append([]string{"env", "URDMA_SOCKET=" + n.Socket(), n.Program("urdma")}, argv...)...)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
	p.Kill()
	return nil
}

// program runs one of Debian's programs at each end, and sometimes kills one of them.
func (s *soak) program(_ context.Context, r *rand.Rand) error {
	server, client := s.either(r)
	port := fmt.Sprint(18600 + s.port.Add(1)%500)
	size := fmt.Sprint(1 << r.IntN(17))
	var argv []string
	switch r.IntN(4) {
	case 0:
		argv = []string{"rping", "-p", port, "-V", "-C", fmt.Sprint(1 + r.IntN(2000))}
	default:
		argv = []string{lab.Perftest[r.IntN(len(lab.Perftest))], "-R", "-F", "-p", port, "-n", fmt.Sprint(5 + r.IntN(3000)),
			"-s", size}
	}
	pair := lab.Pair{ServerNode: server, ClientNode: client, Server: argv, Client: append(argv, client.Address)}
	if argv[0] == "rping" {
		pair.Server = append(argv, "-s", "-a", server.Address)
		pair.Client = append(argv, "-c", "-a", server.Address)
	} else {
		pair.Client = append(append([]string{}, argv...), server.Address)
	}
	return s.meet(r, pair)
}

func (s *soak) meet(r *rand.Rand, pair lab.Pair) error {
	server, err := pair.StartServer()
	if err != nil {
		return err
	}
	client, err := pair.ClientNode.Exec(pair.Client...)
	if err != nil {
		return err
	}
	s.programs.Add(2)
	if r.IntN(3) == 0 {
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		[]*lab.Process{server, client}[r.IntN(2)].Kill()
		s.kills.Add(1)
	}
	_ = client.Wait(15 * time.Second) // any result: the other may have been killed
	server.Kill()                     // likewise
	return nil
}

// usage is the resources of a urdmad.
type usage struct{ Descriptors, Mappings, Threads, ResidentKB int }

func (s *soak) usage(n *lab.Node) (u usage) {
	proc := fmt.Sprintf("/proc/%d/", n.Daemon.PID())
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		s.t.Fatalf("urdmad of %s: %v\n%s", n.Name, err, lab.Tail(n.Daemon.Output(), 60))
	}
	u.Descriptors = len(fds)
	if u.Mappings, err = n.ClientMemory(); err != nil {
		s.t.Fatal(err)
	}
	status, _ := os.ReadFile(proc + "status")
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "Threads: %d", &u.Threads)
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &u.ResidentKB)
	}
	return u
}

// settled counts when the programs' resources are freed: only the pair's descriptors and mappings of clients may
// remain, as after the first round.
func (s *soak) settled(table [][2]usage) (now [2]usage) {
	for end := time.Now().Add(lab.Patience); ; time.Sleep(50 * time.Millisecond) {
		done := true
		for i, n := range s.nodes {
			now[i] = s.usage(n)
			done = done && s.clients(n) == 1 && (len(table) == 0 || now[i].Descriptors <= table[0][i].Descriptors &&
				now[i].Mappings <= table[0][i].Mappings)
		}
		if done {
			return now
		}
		if time.Now().After(end) {
			s.t.Errorf("the urdmads have %+v, had %+v after the first round", now, table)
			return now
		}
	}
}

// clients returns the number of connected clients.
func (s *soak) clients(n *lab.Node) int {
	out, err := n.Urdma("show", "client", "--json")
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(out, `"command"`)
}

// Go's heap and threads vary by this much.
const (
	roomKB      = 24 << 10
	roomThreads = 6
)

// flat compares the maximum in the first third of the table with the minimum in the last: any steady growth exceeds
// it in time, but a variation does not.
func (s *soak) flat(table [][2]usage) {
	third := max(1, len(table)/3)
	for i, n := range s.nodes {
		most, least := table[0][i], table[len(table)-1][i]
		for _, u := range table[:third] {
			most.Threads, most.ResidentKB = max(most.Threads, u[i].Threads), max(most.ResidentKB, u[i].ResidentKB)
		}
		for _, u := range table[len(table)-third:] {
			least.Threads, least.ResidentKB = min(least.Threads, u[i].Threads), min(least.ResidentKB, u[i].ResidentKB)
		}
		if least.Threads > most.Threads+roomThreads || least.ResidentKB > most.ResidentKB+roomKB {
			s.t.Errorf("urdmad of %s had at most %+v and has at least %+v", n.Name, most, least)
		}
	}
}
