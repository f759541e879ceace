package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// TestStrict: correct programs pass under everything that specifications allow, inside one urdmad and between two.
func TestStrict(t *testing.T) {
	whole(t)
	t.Setenv("URDMA_STRICT", "all,seed:3")
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			n := &byNumber{server: a, client: b, tcp: "127.0.0.1"}
			for _, program := range []string{"ibv_rc_pingpong -c", "ibv_rc_pingpong -e", "ibv_srq_pingpong -q 4",
				"ibv_srq_pingpong -q 4 -e", "ibv_xsrq_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"} {
				t.Run(program, func(t *testing.T) {
					argv := strings.Fields(program)
					need(t, argv[0])
					n.run(t, "ib", argv[0], argv[1:]...)
				})
			}
			for _, program := range []string{"ib_send_bw", "ib_send_bw -e", "ib_send_lat -e", "ib_write_bw", "ib_write_lat",
				"ib_read_bw", "ib_atomic_lat"} {
				t.Run(program, func(t *testing.T) {
					argv := strings.Fields(program)
					need(t, argv[0])
					pass(t, lab.PerftestPair(a, b, argv[0], append(argv[1:], "-n", "200")...))
				})
			}
			for _, c := range []struct{ server, client string }{
				{"rping -s -C 50 -V", "rping -c -a HOST -C 50 -V"},
				{"ucmatose -c 4 -C 20", "ucmatose -c 4 -C 20 -s HOST"},
				{"rdma_server", "rdma_client -s HOST"},
				{"udaddy -c 2 -C 20", "udaddy -c 2 -C 20 -s HOST"},
				{"rstream -S 1000 -C 20", "rstream -S 1000 -C 20 -s HOST"},
			} {
				t.Run(c.server, func(t *testing.T) {
					need(t, "rping")
					pass(t, lab.Pair{ServerNode: a, ClientNode: b, Server: strings.Fields(c.server),
						Client: strings.Fields(strings.ReplaceAll(c.client, "HOST", a.Address))})
				})
			}
		})
	}
}

// TestStrictAttributes: a program that has more Reads outstanding than its peer serves works, gets a warning, and
// fails under --strict, inside one urdmad and between two. A program whose sq_psn or path_mtu is not its peer's also
// fails, but gets no warning. A program with fitting attributes passes.
func TestStrictAttributes(t *testing.T) {
	need(t, "gcc")
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			binary := programtest.Compile(t, filepath.Join(a.Directory(), "reads"), "testdata/reads.c", "-libverbs")
			for _, c := range []struct{ variable, attributes, says string }{
				{"URDMA_STRICT=", "4", ""}, {"URDMA_WARN=error", "4", "0x0816, "}, {"URDMA_STRICT=attributes", "4", "status 9\n"},
				{"URDMA_WARN=error", "1", ""}, {"URDMA_STRICT=attributes", "1", ""},
				{"URDMA_STRICT=", "1 4712", ""}, {"URDMA_STRICT=attributes", "1 4712", "status 12\n"},
				{"URDMA_STRICT=", "1 4711 1", ""}, {"URDMA_STRICT=attributes", "1 4711 1", "status 9\n"},
			} {
				port := programtest.FreePort(t)
				p := lab.Pair{ServerNode: a, ClientNode: b, TCPPort: port, Server: []string{binary, strconv.Itoa(port)},
					Client: append([]string{"env", c.variable, binary, strconv.Itoa(port), "127.0.0.1"},
						strings.Fields(c.attributes)...)}
				if c.says == "" {
					pass(t, p)
				} else if r, err := p.Run(); err == nil || !strings.Contains(r.Client, c.says) {
					t.Errorf("%s, %s: expected %q, got %v\n%s", c.variable, c.attributes, c.says, err, r.Client)
				}
			}
		})
	}
}
