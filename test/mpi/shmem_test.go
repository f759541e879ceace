package mpi

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// openshmem is the way from Open MPI's OpenSHMEM to verbs.
var openshmem = way{"OpenSHMEM", append([]string{"spml", "ucx"}, ucx...),
	[]string{"SHMEM_SYMMETRIC_SIZE=64M", "UCX_TLS=rc,ud,self", "UCX_NET_DEVICES=urdma0:1", "URDMA_TRANSPORT=roce"}}

// TestOpenSHMEM: another host writes variables in a program's data segment, which OpenSHMEM finds through
// /proc/self/maps.
func TestOpenSHMEM(t *testing.T) {
	need(t, "oshcc")
	for _, wire := range []lab.Wire{lab.Memif, lab.TCP} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			program := filepath.Join(c.lab.Dir, "symmetric")
			if out, err := exec.Command("oshcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program,
				"testdata/shmem/symmetric.c").CombinedOutput(); err != nil {
				t.Fatalf("oshcc: %v\n%s", err, out)
			}
			before := c.sent(t)
			out, err := c.run(2, openshmem, 5*time.Minute, program)
			if err != nil || strings.Count(out, "OK: ") != 2 {
				t.Fatalf("%v\n%s", err, lab.Tail(out, 40))
			}
			c.carried(t, openshmem.name, before, 1<<20)
			c.left(t)
		})
	}
}
