package mpi

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// long reports whether the long tests were requested.
var long = os.Getenv("URDMA_LONG") != ""

// way is one way from Open MPI to verbs: its parameters, alternately name and value, and variables for the ranks.
type way struct {
	name        string
	parameters  []string
	environment []string
}

var (
	openib = []string{"pml", "ob1", "btl", "openib,self", "osc", "pt2pt"}
	ucx    = []string{"pml", "ucx", "osc", "ucx", "btl", "self"}

	private = way{"openib, shared receive queues disabled",
		append(openib[:6:6], "btl_openib_receive_queues", "P,65536,256,192,128"), nil}.orLibfabric()
	shared = way{"openib, default receive queues", openib, nil}.orLibfabric()

	ways = []way{private, shared, libfabric(),
		{"openib, only shared receive queues", append(openib[:6:6], "btl_openib_receive_queues", "S,65536,256,128,32"), nil},
		{"ucx, rc", ucx, []string{"UCX_TLS=rc,ud,self", "UCX_NET_DEVICES=urdma0:1", "URDMA_TRANSPORT=ib"}},
		{"ucx, ud", ucx, []string{"UCX_TLS=ud_verbs,self", "UCX_NET_DEVICES=urdma0:1", "URDMA_TRANSPORT=ib"}},
	}
)

// pass runs tests that must succeed and send at least that many bytes through each urdmad.
func pass(t *testing.T, c *cluster, ranks int, w way, least uint64, tests ...string) {
	t.Helper()
	installed(t, w)
	before := c.sent(t)
	out, err := c.run(ranks, w, 5*time.Minute, append([]string{c.check}, tests...)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", tests, err, lab.Tail(out, 40))
	}
	for _, test := range tests {
		if !strings.Contains(out, "OK: "+test+", ") {
			t.Errorf("%s did not end well:\n%s", test, lab.Tail(out, 40))
		}
	}
	c.carried(t, fmt.Sprint(w.name, tests), before, least)
}

// TestWays: every way, within a urdmad and between two. The largest messages use openib without shared receive queues
// everywhere, the other ways only in long runs. Ways that TestStrict tests are left out here, except the first way
// within a urdmad. Ranks with several threads differ in the program, not on the wire.
func TestWays(t *testing.T) {
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif.Jumbo()} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			for i, w := range ways {
				t.Run(w.name, func(t *testing.T) {
					if (wire.Name == lab.Loopback.Name) == (i == 0) || long {
						pass(t, c, 2, w, 1<<20, "flood", "types", "collectives", "one_sided")
					}
					if wire.Name == lab.Loopback.Name || long {
						pass(t, c, 2, w, 1<<10, "threads")
					}
					if i == 0 || long {
						pass(t, c, 2, w, 64<<20, "point_to_point")
					}
				})
			}
			c.left(t)
		})
	}
}

// TestMixed: some of four ranks share a urdmad.
func TestMixed(t *testing.T) {
	c := newCluster(t, lab.Memif)
	pass(t, c, 4, shared, 1<<20, "flood", "collectives")
	if long {
		pass(t, c, 16, private, 1<<20, "collectives", "types")
	}
}

// TestWires: hosts joined by the kernel's UDP and TCP and by Ethernet frames, with shared receive queues disabled; in
// long runs also enabled, which short runs test in TestWays.
func TestWires(t *testing.T) {
	for _, wire := range []lab.Wire{lab.UDP, lab.TCP, lab.AFPacket} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			pass(t, c, 2, private, 1<<20, "flood", "types", "collectives", "one_sided")
			if long {
				pass(t, c, 2, shared, 1<<20, "flood", "types", "collectives", "one_sided")
				for _, w := range ways {
					pass(t, c, 2, w, 64<<20, "point_to_point", "flood", "types", "collectives", "one_sided")
				}
			}
			c.left(t)
		})
	}
}

// TestFourHosts: a rank on each host; and two ranks on one host with one on another.
// Over TCP only in long runs: its connections are the kernel's whatever the number of hosts, and TestWires uses it.
func TestFourHosts(t *testing.T) {
	wires := []lab.Wire{lab.UDP, lab.AFPacket}
	if long {
		wires = append(wires, lab.TCP)
	}
	for _, wire := range wires {
		t.Run(wire.Name, func(t *testing.T) {
			c := newHosts(t, wire, func(l *lab.Lab, settings lab.Config) ([]*lab.Node, error) {
				return l.JoinSwitch(wire, 4, settings)
			})
			if wire.Name == lab.UDP.Name || long {
				pass(t, c, 4, private, 1<<20, "flood", "collectives")
			}
			if wire.Name != lab.UDP.Name || long {
				pass(t, c, 6, shared, 1<<20, "flood", "collectives")
			}
			c.left(t)
		})
	}
}

// TestSpawn: processes that a rank starts find urdmad if mpirun itself runs under urdma exec.
func TestSpawn(t *testing.T) {
	c := newCluster(t, lab.Loopback)
	argv := append([]string{c.lab.Program("urdma"), "exec", "--"}, c.arguments(2, private.parameters)...)
	out, err := c.wait(5*time.Minute, append(argv, c.check, "spawn"))
	if err != nil || !strings.Contains(out, "OK: spawn") {
		t.Errorf("%v\n%s", err, lab.Tail(out, 40))
	}
	c.left(t)
}

// TestEnd: if one rank gives up or is killed, the job ends with an error and leaves no objects in urdmad. In short
// runs it uses one wire of each carrier; test/e2e kills programs on all wires.
func TestEnd(t *testing.T) {
	wires := []lab.Wire{lab.Loopback, lab.Memif, lab.TCP}
	if long {
		wires = append(wires, lab.UDP, lab.AFPacket)
	}
	for _, wire := range wires {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			// mpirun's texts may be missing: ranks that end at the same time interrupt each other's
			// reports.
			for test, status := range map[string]string{"abort": "exit status 3", "die": "exit status 137"} {
				out, err := c.run(3, private, 5*time.Minute, c.check, test)
				if err == nil || !strings.HasSuffix(err.Error(), status) {
					t.Errorf("%s: %v, not %q:\n%s", test, err, status, lab.Tail(out, 40))
				}
			}
			c.left(t)
			c.givenBack(t)
		})
	}
}
