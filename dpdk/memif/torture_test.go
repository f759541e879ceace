package memif

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"urdma/dpdk/port"
)

const (
	peerEnv = "URDMA_TORTURE_PEER"
	burst   = 32
)

func TestMain(m *testing.M) {
	if v := os.Getenv(peerEnv); v != "" {
		role, path, _ := strings.Cut(v, " ")
		if err := peerProcess(role == "server", path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// peerProcess loads the link in both directions until it is killed, or until its parent has ended.
func peerProcess(server bool, path string) error {
	p, err := Open(Options{Name: "peer", SocketPath: path, Server: server, MTU: 9000, RingSize: 256})
	if err != nil {
		return err
	}
	parent := os.Getppid()
	for os.Getppid() == parent {
		for range 1000 {
			touchBursts(p, 1500)
		}
	}
	return nil
}

// touchBursts sends a burst, receives a burst, and touches every byte of both.
func touchBursts(p port.Port, size int) (got int) {
	q := p.Queue(0)
	var tx, rx [burst]port.Packet
	n := q.Alloc(tx[:])
	for i := range tx[:n] {
		tx[i].Data = tx[i].Data[:size]
		for j := range tx[i].Data {
			tx[i].Data[j] = byte(i)
		}
	}
	k := q.Tx(tx[:n])
	q.Flush()
	q.Free(tx[k:n])
	got = q.Rx(rx[:])
	sum := 0
	for i := range rx[:got] {
		for _, b := range rx[i].Data {
			sum += int(b)
		}
	}
	q.Free(rx[:got])
	runtime.Gosched()
	return got
}

func kills() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 100
	}
	return 25
}

// TestPeerKilled kills the peer under load, in both roles. The survivor must keep running, link with each new peer,
// and not grow.
func TestPeerKilled(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		t.Run("peer is "+role, func(t *testing.T) { torture(t, role) })
	}
}

func torture(t *testing.T, role string) {
	const seed = 42
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	path := filepath.Join(t.TempDir(), "m.sock")
	p, err := Open(Options{
		Name: "survivor", SocketPath: path, Server: role == "client", MTU: 9000, RingSize: 256,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var before growth
	held := make([]port.Packet, 0, 64)
	for i := range kills() {
		child := startPeer(t, role, path)
		held = loadUntilKill(t, p, child, rng, held)
		if i == 4 {
			before = measureGrowth(t)
		}
	}
	p.Queue(0).Free(held)
	p.Queue(0).Rx(make([]port.Packet, 1))
	after := measureGrowth(t)
	t.Logf("before %+v, after %+v, %+v", before, after, p.Stats())
	if after.fds > before.fds+2 || after.maps > before.maps+2 || after.kb > before.kb+32<<10 {
		t.Errorf("grew from %+v to %+v", before, after)
	}
	if s := p.Stats(); s.LinkUps != uint64(kills()) {
		t.Errorf("%d links for %d peers", s.LinkUps, kills())
	}
}

func startPeer(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"="+role+" "+path)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// loadUntilKill runs traffic until frames pass, kills the peer at a random moment, and returns packets that it
// still holds. It checks and releases the packets held since the previous call.
func loadUntilKill(t *testing.T, p port.Port, child *exec.Cmd, rng *rand.Rand, held []port.Packet) []port.Packet {
	t.Helper()
	defer child.Wait()
	defer child.Process.Kill()
	deadline := time.Now().Add(time.Minute)
	for got := 0; got < 200; got += touchBursts(p, 1500) {
		if time.Now().After(deadline) {
			t.Fatalf("no traffic with a new peer: link %v, %+v", p.Link(), p.Stats())
		}
	}
	for i := range held {
		for _, b := range held[i].Data {
			if int(b) >= burst {
				t.Fatalf("a held frame changed: byte %d", b)
			}
		}
	}
	p.Queue(0).Free(held)
	killed := make(chan struct{})
	go func() {
		time.Sleep(time.Duration(rng.IntN(20000)) * time.Microsecond)
		child.Process.Kill()
		close(killed)
	}()
	held = held[:0]
	for p.Link() {
		touchBursts(p, 1500)
		if len(held) < cap(held)/2 {
			held = held[:len(held)+p.Queue(0).Rx(held[len(held):cap(held)])]
		}
	}
	<-killed
	return held
}

type growth struct{ fds, maps, kb int }

func measureGrowth(t *testing.T) (g growth) {
	t.Helper()
	runtime.GC()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	g.fds = len(d)
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.Contains(s.Text(), "memfd:") {
			g.maps++
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fmt.Sscan(rest, &g.kb)
	return g
}
