package mpi

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// long tells whether the long tests were asked for.
var long = os.Getenv("URDMA_LONG") != ""

// way is how Open MPI reaches verbs: its parameters, name and value in turn, and
// variables for the ranks.
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

// pass runs tests that have to succeed, and to send at least that many bytes
// through each urdmad.
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

// TestWays: every way, within a urdmad and between two. The largest messages go by
// openib without shared receive queues everywhere, by the others in long runs. What
// TestStrict runs within a urdmad as well is left to it, but for the first way.
func TestWays(t *testing.T) {
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif.Jumbo()} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			for i, w := range ways {
				t.Run(w.name, func(t *testing.T) {
					if wire.Name != lab.Loopback.Name || i == 0 || long {
						pass(t, c, 2, w, 1<<20, "flood", "types", "collectives", "one_sided")
					}
					pass(t, c, 2, w, 1<<10, "threads")
					if i == 0 || long {
						pass(t, c, 2, w, 64<<20, "point_to_point")
					}
				})
			}
			c.left(t)
		})
	}
}

// TestMixed: of four ranks some share a urdmad and some don't.
func TestMixed(t *testing.T) {
	c := newCluster(t, lab.Memif)
	pass(t, c, 4, shared, 1<<20, "flood", "collectives")
	if long {
		pass(t, c, 16, private, 1<<20, "collectives", "types")
	}
}

// TestWires: hosts joined by the kernel's UDP and TCP and by Ethernet frames, with shared
// receive queues disabled and enabled, which in short runs is over UDP alone.
func TestWires(t *testing.T) {
	for _, wire := range []lab.Wire{lab.UDP, lab.TCP, lab.AFPacket} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			pass(t, c, 2, private, 1<<20, "flood", "types", "collectives", "one_sided")
			if wire.Name == lab.UDP.Name || long {
				pass(t, c, 2, shared, 1<<20, "flood", "types", "collectives", "one_sided")
			}
			if long {
				for _, w := range ways {
					pass(t, c, 2, w, 64<<20, "point_to_point", "flood", "types", "collectives", "one_sided")
				}
			}
			c.left(t)
		})
	}
}

// TestFourHosts: a rank on each, and ranks of which two share a host with one that
// has another.
func TestFourHosts(t *testing.T) {
	for _, wire := range []lab.Wire{lab.UDP, lab.TCP, lab.AFPacket} {
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

// TestSpawn: processes that a rank starts find urdmad when mpirun itself runs under
// urdma exec.
func TestSpawn(t *testing.T) {
	c := newCluster(t, lab.Loopback)
	argv := append([]string{c.lab.Program("urdma"), "exec", "--"}, c.arguments(2, private.parameters)...)
	out, err := c.wait(5*time.Minute, append(argv, c.check, "spawn"))
	if err != nil || !strings.Contains(out, "OK: spawn") {
		t.Errorf("%v\n%s", err, lab.Tail(out, 40))
	}
	c.left(t)
}

// TestEnd: a job of which one rank gives up or is killed ends with an error, and
// leaves nothing with urdmad. In short runs a wire of each carrier is enough: test/e2e kills over all.
func TestEnd(t *testing.T) {
	wires := []lab.Wire{lab.Loopback, lab.Memif, lab.TCP}
	if long {
		wires = append(wires, lab.UDP, lab.AFPacket)
	}
	for _, wire := range wires {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			// mpirun's texts can be missing: ranks that end at once cut each other's reports.
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
