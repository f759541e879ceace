package qp_test

import (
	"testing"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestBeforeNone: before a work request that is not outstanding there is none to complete.
func TestBeforeNone(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 62})
	a, _ := w.Pair(false, nil)
	head := a.Q.SQ.Head()
	a.Q.CompleteBefore(a.Q.SQ.Tail() + 1)
	a.Q.CompleteBefore(head - 1)
	a.Q.FailRevoked(head + 2)
	if a.Q.SQ.Head() != head || a.Q.State() != abi.QPSRTS || len(a.Send.Poll()) != 0 {
		t.Errorf("the queue begins at %d, expected %d; state %d", a.Q.SQ.Head(), head, a.Q.State())
	}
}
