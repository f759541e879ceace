package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// chosenPolicy is the scheduling policy that bench/floor/README.md recommends.
const chosenPolicy = "post=same kick=1 poll=1 pollalone=1us pollspin=2us spin=0 yield=50us nap=ever alone=1us " +
	"alonespin=2us hog=1ms napslice=100us "

// floor measures the latency of the thread layout alone, without any protocol: half a round trip in µs, median and
// 99th percentile.
func floor(words string) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		program := filepath.Join(b.Build, "floor")
		if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("bench/floor is not built (make -C bench/floor)")
		}
		cmd := exec.Command(program, chosenPolicy+words)
		cmd.Env = append(os.Environ(), "FLOOR_MS="+b.shortMilliseconds())
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("floor: %w: %s", err, out)
		}
		return parseFloor(string(out))
	}
}

// parseFloor reads the only row of a table. Behind the words its columns are pings, mean, median, p90, p99, worst,
// the daemon's share and switches.
func parseFloor(out string) ([]float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	f := strings.Fields(lines[len(lines)-1])
	const columns, median, p99 = 8, 2, 4
	if len(f) <= columns {
		return nil, fmt.Errorf("floor printed no row: %q", out)
	}
	f = f[len(f)-columns:]
	var values []float64
	for _, column := range []int{median, p99} {
		v, err := strconv.ParseFloat(f[column], 64)
		if err != nil {
			return nil, fmt.Errorf("floor: %w in %q", err, lines[len(lines)-1])
		}
		values = append(values, v)
	}
	return values, nil
}

// copying measures how fast one thread copies size bytes to another place, again and again: Gb/s.
func copying(size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		from, to := make([]byte, size), make([]byte, size)
		for i := range from {
			from[i] = byte(i)
		}
		const once = 16 // copies between two readings of the clock
		bytes := 0
		start := time.Now()
		for time.Since(start) < b.short() {
			for range once {
				copy(to, from)
			}
			bytes += once * size
		}
		return []float64{float64(bytes) * 8 / 1e9 / time.Since(start).Seconds()}, nil
	}
}
