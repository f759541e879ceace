package suite

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// netpipeRepeats is how many messages of one size NetPIPE sends in each direction.
const netpipeRepeats = "3000"

// netpipe measures NetPIPE over kernel TCP between two hosts joined by veth of
// MTU 1,500, at one message size: Gb/s, and half a round trip in µs.
func netpipe(size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		if _, err := exec.LookPath("NPtcp"); err != nil {
			return nil, errors.New("NPtcp (Debian package netpipe-tcp) is not installed")
		}
		k, err := b.places.kernel(1500)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "urdma-netpipe-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		bytes := strconv.Itoa(size)
		common := []string{"NPtcp", "-p", "0", "-l", bytes, "-u", bytes, "-n", netpipeRepeats}
		file := filepath.Join(dir, "client")
		if _, err := k.Run(time.Minute, append(common[:len(common):len(common)], "-o", filepath.Join(dir, "server")),
			append(common[:len(common):len(common)], "-h", k.Address, "-o", file)); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return parseNetpipe(string(text))
	}
}

// parseNetpipe reads the only row of NetPIPE's file: bytes, Mb/s, seconds of half
// a round trip.
func parseNetpipe(text string) ([]float64, error) {
	f := strings.Fields(text)
	if len(f) != 3 {
		return nil, fmt.Errorf("NetPIPE wrote %q, expected one row of three columns", text)
	}
	rate, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.ParseFloat(f[2], 64)
	return []float64{rate / 1e3, seconds * 1e6}, err
}
