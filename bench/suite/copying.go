package suite

import "time"

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
