package mpi

import (
	"slices"
	"testing"

	"urdma/test/lab"
)

// TestStrict: Open MPI does not rely on behaviour that only urdma has, with one exception: openib sets an rnr_retry
// of 0 on queue pairs with receives of their own, and assumes that each of these can be used as soon as it is posted
// (docs/MPI.md).
func TestStrict(t *testing.T) {
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif.Jumbo()} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			for i, w := range ways {
				if i > 0 && wire.Name != lab.Loopback.Name && !long {
					continue
				}
				t.Run(w.name, func(t *testing.T) {
					strict := "URDMA_STRICT=all"
					if w.name == private.name {
						strict = "URDMA_STRICT=-rnr"
					}
					w.environment = append(slices.Clone(w.environment), strict)
					pass(t, c, 2, w, 1<<20, "flood", "types", "collectives", "one_sided")
				})
			}
			c.left(t)
		})
	}
}
