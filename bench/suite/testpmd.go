package suite

import (
	"errors"
	"os"
	"path/filepath"

	"urdma/bench/testpmd"
)

const (
	ethernetHeader = 14
	memifRing      = 1024 // slots, as in our memif
)

// testpmdMemif measures DPDK's memif between two processes at an MTU, in Gb/s of frames.
func testpmdMemif(mtu int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		dir, err := os.MkdirTemp("", "urdma-testpmd-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		frame := mtu + ethernetHeader
		pps, err := testpmd.Memif(filepath.Join(dir, "memif.sock"), frame, memifRing, b.short().Seconds())
		return []float64{pps * float64(frame) * 8 / 1e9}, err
	}
}

// testpmdVeth measures a DPDK driver between two hosts joined by veth, in million frames of 1,514 bytes per second.
func testpmdVeth(driver string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		if os.Getuid() != 0 {
			return nil, errors.New("testpmd takes root for this driver")
		}
		dir, err := os.MkdirTemp("", "urdma-testpmd-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		k, err := b.places.frames()
		if err != nil {
			return nil, err
		}
		vdev := driver + ",iface=veth0"
		pps, err := testpmd.Between(filepath.Join(dir, "veth"), testpmd.Port{Vdev: vdev, Command: k.A.Command},
			testpmd.Port{Vdev: vdev, Command: k.B.Command}, 1500+ethernetHeader, b.short().Seconds())
		return []float64{pps / 1e6}, err
	}
}
