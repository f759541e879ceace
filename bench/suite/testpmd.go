package suite

import (
	"os"
	"path/filepath"

	"urdma/bench/testpmd"
)

const (
	ethernetHeader = 14
	memifRing      = 1024 // slots, as ours
)

// testpmdMemif measures DPDK's memif between two processes at an MTU, in Gb/s of
// frames.
func testpmdMemif(mtu int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		dir, err := os.MkdirTemp("", "urdma-testpmd-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		frame := mtu + ethernetHeader
		pps, err := testpmd.Memif(filepath.Join(dir, "memif.sock"), frame, memifRing, b.Seconds)
		return []float64{pps * float64(frame) * 8 / 1e9}, err
	}
}
