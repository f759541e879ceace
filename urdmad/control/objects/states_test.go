package objects

import (
	"slices"
	"testing"

	"urdma/inspect"
	"urdma/urdmad/core/cm"
	"urdma/verbs/abi"
)

// TestStateNames: the names that a snapshot's readers know are those of the
// states there are.
func TestStateNames(t *testing.T) {
	for state, name := range map[uint32]string{abi.QPSReset: "RESET", abi.QPSInit: "INIT", abi.QPSRTR: "RTR",
		abi.QPSRTS: "RTS",
		abi.QPSSQD: "SQD", abi.QPSSQE: "SQE", abi.QPSErr: "ERR"} {
		if got := inspect.QPStates[state]; got != name {
			t.Errorf("queue pair state %d is called %q, expected %q", state, got, name)
		}
	}
	ids := slices.Sorted(slices.Values(append(inspect.IDStates[:], "listening")))
	if states := slices.Sorted(slices.Values(cm.StateNames[:])); !slices.Equal(ids, states) {
		t.Errorf("ids have the states %q, and snapshots %q", states, ids)
	}
}
