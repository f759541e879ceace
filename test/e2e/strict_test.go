package e2e

import (
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestStrict: programs that are right pass while all that specifications allow is shown to
// them, inside one urdmad and between two.
func TestStrict(t *testing.T) {
	t.Setenv("URDMA_STRICT", "all,seed:3")
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			n := &byNumber{server: a, client: b, tcp: "127.0.0.1"}
			for _, program := range []string{"ibv_rc_pingpong -c", "ibv_rc_pingpong -e", "ibv_srq_pingpong -q 4", "ibv_xsrq_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong"} {
				t.Run(program, func(t *testing.T) {
					argv := strings.Fields(program)
					need(t, argv[0])
					n.run(t, "ib", argv[0], argv[1:]...)
				})
			}
			for _, program := range []string{"ib_send_bw", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_atomic_lat"} {
				t.Run(program, func(t *testing.T) {
					need(t, program)
					pass(t, lab.PerftestPair(a, b, program, "-n", "200"))
				})
			}
		})
	}
}
