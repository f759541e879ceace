package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

const (
	deathTimeout = 800 * time.Millisecond
	// Programs need a moment to see the error and exit; the machine may be busy.
	leaveTime = lab.Patience
)

// victim is the process that a round kills.
type victim string

const (
	killClient  victim = "client"
	killServer  victim = "server"
	killDaemonA victim = "urdmad of the server"
	killDaemonB victim = "urdmad of the client"
	killDaemons victim = "both urdmads"
)

// killWires are the wires of short runs: every carrier with one worker, two of them with several, and drivers with a
// socket, with shared memory and with a program in the kernel. A carrier treats a silent peer, and package control a
// client that has ended, in the same way with every driver: TestDeath of urdmad/core/trp, TestSilentPeers of
// urdmad/core/mpa and TestCleanUpInParts of urdmad/control show it.
var killWires = []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.AFXDPKernel, lab.Memif.WithWorkers(2),
	lab.TCP.WithWorkers(2)}

// TestKill kills programs and daemons during a transfer: the other programs get errors and end by themselves, no
// urdmad ends with its peer, nothing leaks, and the next connection works.
func TestKill(t *testing.T) {
	whole(t)
	wires := killWires
	if long {
		wires = slices.Concat(perWire, severalWorkers())
	}
	for i, w := range wires {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": deathTimeout.Milliseconds()})
			victims := []victim{killClient, killServer, killDaemonA, killDaemonB, killDaemons}
			if a == b {
				victims = []victim{killClient, killServer, killDaemonA}
			}
			works(t, a, b)
			for j, v := range victims {
				// On these wires every victim is killed at all moments of killRound, and in all
				// programs of transfer.
				first, rounds := i+j, 1
				if long {
					first, rounds = 0, 20
				}
				t.Run(strings.ReplaceAll(string(v), " ", "-"), func(t *testing.T) { killRounds(t, a, b, v, first, rounds) })
			}
		})
	}
}

func killRounds(t *testing.T, a, b *lab.Node, v victim, first, rounds int) {
	daemons := []int{a.Daemon.PID(), b.Daemon.PID()}
	before := [2]int{descriptors(t, a), descriptors(t, b)}
	for i := range rounds {
		killRound(t, a, b, v, first+i)
		if t.Failed() {
			return
		}
	}
	works(t, a, b)
	for i, n := range []*lab.Node{a, b} {
		if !n.Daemon.Running() {
			t.Fatalf("urdmad of %s is not running:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 30))
		}
		if n.Daemon.PID() == daemons[i] && !settlesTo(t, n, before[i]) {
			t.Errorf("urdmad of %s has %d descriptors, had %d before", n.Name, descriptors(t, n), before[i])
		}
		for _, kind := range []string{"qp", "mr", "cq", "pd", "connection", "listener", "client"} {
			hasNone(t, n, kind)
		}
	}
	for _, n := range labtest.Nodes(a, b) {
		givenBack(t, n)
	}
}

// givenBack waits until urdmad, which has no client any more, maps no ring and no client's memory.
func givenBack(t *testing.T, n *lab.Node) {
	t.Helper()
	var left int
	var err error
	for end := time.Now().Add(lab.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left, err = n.ClientMemory(); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
	}
	t.Errorf("urdmad of %s still maps %d pieces of clients' memory and rings", n.Name, left)
}

// killRound runs a transfer, kills the victim and waits for the others to end.
func killRound(t *testing.T, a, b *lab.Node, v victim, round int) {
	t.Helper()
	server, client := begin(t, a, b, transfer(a, b, round))
	defer server.Kill()
	defer client.Kill()
	time.Sleep(time.Duration(37*(round%7)) * time.Millisecond)
	begin := time.Now()
	survivors := map[string]*lab.Process{"server": server, "client": client}
	switch v {
	case killClient:
		client.Kill()
		delete(survivors, "client")
	case killServer:
		server.Kill()
		delete(survivors, "server")
	case killDaemonA:
		a.Daemon.Kill()
	case killDaemonB:
		b.Daemon.Kill()
	case killDaemons:
		a.Daemon.Signal(syscall.SIGKILL)
		b.Daemon.Kill()
		a.Daemon.Kill()
	}
	for name, p := range survivors {
		if err := p.Wait(deathTimeout + leaveTime); err != nil && !strings.Contains(err.Error(), "exit status") {
			t.Errorf("round %d: %s after the death of %s: %v (%v)\n%s\n  urdmad:\n%s", round, name, v, err,
				time.Since(begin), lab.Tail(p.Output(), 12), lab.Tail(a.Daemon.Output(), 12))
		}
	}
	revive(t, a, b)
}

// begin starts a transfer and waits until data moves. If the machine is so busy that a urdmad is silent for this
// test's short death time-out, it tries again.
func begin(t *testing.T, a, b *lab.Node, pair lab.Pair) (server, client *lab.Process) {
	t.Helper()
	const tries = 5
	for try := 1; ; try++ {
		server, err := pair.StartServer()
		if err != nil {
			t.Fatal(err)
		}
		silent := silences(a, b)
		client, err := b.Exec(pair.Client...)
		if err != nil {
			server.Kill()
			t.Fatal(err)
		}
		err = underWay(t, b, client)
		if err == nil {
			return server, client
		}
		client.Kill()
		server.Kill()
		if try == tries || silences(a, b) == silent && !unreachable(client.Output()) {
			t.Fatal(err)
		}
	}
}

// unreachable reports whether a program got RDMA_CM_EVENT_UNREACHABLE, because its peer was silent before a
// connection existed. perftest prints the event's number.
func unreachable(output string) bool {
	return strings.Contains(output, "RDMA_CM_EVENT_UNREACHABLE") ||
		strings.Contains(output, "Unexpected CM event bl blka 7")
}

// silences returns the number of connections that ended because their peer was silent.
func silences(nodes ...*lab.Node) (n int) {
	for _, node := range nodes {
		n += strings.Count(node.Daemon.Output(), "peer is silent, connection ends")
	}
	return n
}

// transfer returns a program that runs until it is stopped. Rounds use all operations in turn, mostly Reads, and
// rarely Writes, since ib_write_bw sleeps a second first. (Not ib_send_bw: on an RNIC its sender waits for credits
// with nothing posted, so no error can reach it.)
func transfer(a, b *lab.Node, round int) lab.Pair {
	switch {
	case round%7 == 2:
		return lab.PerftestPair(a, b, "ib_write_bw", "-D", "60", "-s", "16384")
	case round%2 == 0:
		return lab.PerftestPair(a, b, "ib_read_bw", "-D", "60", "-s", "16384")
	}
	return lab.Pair{ServerNode: a, ClientNode: b, Server: []string{"rping", "-s"},
		Client: []string{"rping", "-c", "-a", a.Address}}
}

// underWay waits until the client's queue pairs have moved more bytes than perftest exchanges before it begins. It
// returns an error if the client ends before.
func underWay(t *testing.T, n *lab.Node, client *lab.Process) error {
	t.Helper()
	var out string
	for end := time.Now().Add(lab.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !client.Running() {
			return fmt.Errorf("the client ended by itself:\n%s", client.Output())
		}
		var bytes uint64
		if bytes, out = moved(t, n, client); bytes >= 4096 {
			return nil
		}
	}
	t.Fatalf("no transfer begins:\n%s%s", client.Output(), out)
	return nil
}

// moved returns the number of bytes that a client's queue pairs have sent and received, and urdma's output about all
// of them.
func moved(t *testing.T, n *lab.Node, client *lab.Process) (bytes uint64, out string) {
	t.Helper()
	out, err := n.Urdma("show", "qp", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []struct {
		PID      int    `json:"pid"`
		Sent     uint64 `json:"bytes_sent"`
		Received uint64 `json:"bytes_received"`
	}
	if err := json.Unmarshal([]byte(out), &pairs); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, q := range pairs {
		if q.PID == client.PID() {
			bytes += q.Sent + q.Received
		}
	}
	return bytes, out
}

// revive starts the killed daemons.
func revive(t *testing.T, a, b *lab.Node) {
	t.Helper()
	started := false
	for _, n := range labtest.Nodes(a, b) {
		if !n.Daemon.Running() {
			if err := n.StartDaemon(); err != nil {
				t.Fatal(err)
			}
			started = true
		}
	}
	if started {
		works(t, a, b)
	}
}

// works runs a short verified rping. The wire may take a moment to come up again, during which rping fails at once.
func works(t *testing.T, a, b *lab.Node) {
	t.Helper()
	var err error
	for end := time.Now().Add(2 * lab.Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err = (lab.Pair{ServerNode: a, ClientNode: b, Limit: lab.Patience / 2,
			Server: []string{"rping", "-s", "-V", "-C", "10"},
			Client: []string{"rping", "-c", "-V", "-C", "10", "-a", a.Address}}).Run(); err == nil {
			return
		}
	}
	t.Fatalf("no connection works any more: %v", err)
}

// descriptors counts the open descriptors of a urdmad.
func descriptors(t *testing.T, n *lab.Node) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Daemon.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settlesTo waits until the number of descriptors has decreased: those of a client are closed when its session has been
// cleaned up.
func settlesTo(t *testing.T, n *lab.Node, want int) bool {
	for end := time.Now().Add(lab.Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if descriptors(t, n) <= want {
			return true
		}
	}
	return false
}
