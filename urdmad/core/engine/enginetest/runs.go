package enginetest

import (
	"os"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/verbs/abi"
)

// ReadWrite are the access rights of memory that peers read and write.
const ReadWrite = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead

// Lossy is a network that loses, duplicates, reorders and corrupts packets.
var Lossy = linked.Path{Loss: 0.03, Duplicate: 0.03, Reorder: 0.1, Corrupt: 0.01, Delay: 20 * time.Microsecond,
	Jitter: 5 * time.Microsecond, ReorderBy: 60 * time.Microsecond}

// Seeds returns the number of seeds for a randomized test: a third of n, and 20 n in long runs.
func Seeds(n int) uint64 {
	if os.Getenv("URDMA_LONG") != "" {
		return uint64(n) * 20
	}
	return uint64(n+2) / 3
}

// Both runs a test over the wire, and between two queue pairs of one engine.
func Both(t *testing.T, fn func(t *testing.T, local bool)) {
	t.Run("wire", func(t *testing.T) { fn(t, false) })
	t.Run("local", func(t *testing.T) { fn(t, true) })
}

// Memories runs a test with shared memory and on the fallback path, by the client's goroutine and
// by the worker, each over the wire and within one engine.
func Memories(t *testing.T, fn func(t *testing.T, local bool, register func(*Client, int, uint32) *Region)) {
	for name, register := range map[string]func(*Client, int, uint32) *Region{
		"shared": (*Client).Register, "fallback": (*Client).RegisterFallback, "direct": (*Client).RegisterDirect} {
		t.Run(name, func(t *testing.T) {
			Both(t, func(t *testing.T, local bool) { fn(t, local, register) })
		})
	}
}

// Expect checks the IDs and statuses of completions, in order.
func Expect(t *testing.T, what string, got []abi.CQE, ids []uint64, status ...uint32) {
	t.Helper()
	for i := range got {
		if got[i].WRID != ids[i] || got[i].Status != status[i] {
			t.Fatalf("%s: completion %d is id %d status %d, expected id %d status %d (all: %+v)", what, i, got[i].WRID,
				got[i].Status, ids[i], status[i], got)
		}
	}
}
