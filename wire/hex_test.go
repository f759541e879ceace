package wire

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// unhex turns spaced hex into bytes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("bad hex %q: %v", s, err)
	}
	return b
}

// sameBytes compares and shows both in hex.
func sameBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got % x\nwant % x", what, got, want)
	}
}

// newRand is the only source of randomness in a test. URDMA_SEED repeats a run.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	if s := os.Getenv("URDMA_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("URDMA_SEED=%q: want a number: %v", s, err)
		}
		seed = n
	}
	t.Logf("seed %d (URDMA_SEED)", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
