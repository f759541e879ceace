package rc

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestSimulation: whatever a network loses, duplicates and reorders, every message arrives once. URDMA_LONG runs
// 100,000 seeds; URDMA_SEED repeats one.
func TestSimulation(t *testing.T) {
	if s := os.Getenv("URDMA_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		simulate(t, seed)
		return
	}
	seeds := uint64(400)
	if os.Getenv("URDMA_LONG") != "" {
		seeds = 100_000
	}
	workers := uint64(runtime.GOMAXPROCS(0))
	for first := range workers {
		t.Run(fmt.Sprintf("seeds from %d", first), func(t *testing.T) {
			t.Parallel()
			for seed := first; seed < seeds; seed += workers {
				simulate(t, seed)
			}
		})
	}
}
