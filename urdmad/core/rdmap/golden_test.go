package rdmap_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex reads bytes in hexadecimal, with spaces for readability.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// hostOrder is the number that a program has stored as these bytes.
func hostOrder(b ...byte) uint32 { return binary.NativeEndian.Uint32(b) }

func expectSegments(t *testing.T, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d segments, expected %d: %x", len(got), len(want), got)
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("segment %d\n%x, expected\n%x", i, got[i], want[i])
		}
	}
}
