package test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryRequestHasAName: the log names the call that failed, not a number.
func TestEveryRequestHasAName(t *testing.T) {
	header, err := os.ReadFile("../../abi/urdma_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../session/names.c")
	if err != nil {
		t.Fatal(err)
	}
	_, enum, _ := strings.Cut(string(header), "enum urdma_abi_type {")
	enum, _, _ = strings.Cut(enum, "};")
	types := regexp.MustCompile(`URDMA_ABI_[A-Z_]+`).FindAllString(enum, -1)
	if len(types) < 30 {
		t.Fatalf("the header has %d requests", len(types))
	}
	for _, name := range types {
		// The library makes no request for INSPECT and the two of captures.
		inspects := strings.HasSuffix(name, "_INSPECT") || strings.Contains(name, "_CAPTURE")
		if !inspects && !strings.Contains(string(table), "["+name+"] =") {
			t.Errorf("%s has no name", name)
		}
	}
}
