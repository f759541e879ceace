package test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/verbs/abi"
)

// TestOperations holds C's table of operations against Go's.
func TestOperations(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "opcode")
	if out, err := exec.Command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", binary,
		"testdata/alone/opcode.c", "../datapath/opcode.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Errorf("the operations said to be supported are others: %v", err)
	}
	bit := map[bool]int{true: 1}
	var want strings.Builder
	for i := range uint32(64) {
		if op := abi.OperationOf(i); op != nil {
			fmt.Fprintln(&want, i, op.Completion, bit[op.Supported], bit[op.Inline], bit[op.WritesLocal], bit[op.Atomic])
		}
	}
	if string(out) != want.String() {
		t.Errorf("C has\n%s\nGo has\n%s", out, want.String())
	}
}
