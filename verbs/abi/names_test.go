package abi

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestTypeNames: each message of the header has its name here.
func TestTypeNames(t *testing.T) {
	header, err := os.ReadFile("urdma_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`(?s)enum urdma_abi_type \{(.*?)\};`).FindSubmatch(header)[1]
	n := 0
	for _, m := range regexp.MustCompile(`URDMA_ABI_(\w+) = (\d+)`).FindAllSubmatch(enum, -1) {
		number, _ := strconv.Atoi(string(m[2])) // the expression matches digits only
		if got := Type(number).String(); got != string(m[1]) {
			t.Errorf("message %d is %q, the header says %q", number, got, m[1])
		}
		n++
	}
	if n != len(typeNames) {
		t.Errorf("the header has %d messages, the table %d", n, len(typeNames))
	}
	if Type(999).String() != "message 999" {
		t.Error("a message without a name has no number either")
	}
}
