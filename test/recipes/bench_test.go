package recipes

import (
	"strings"
	"testing"
)

// TestBenchWithoutABuildDirectory: urdma bench finds the programs that it came
// with, also as an ordinary user and without a network.
func TestBenchWithoutABuildDirectory(t *testing.T) {
	dir := top(t)
	need(t, []string{"sockperf"})
	out := typed(t, t.TempDir(), nil, dir+"/build/urdma bench --rounds 1 --seconds 0.1 --sweeps=false --only 'over lo, 14|unix sockets'")
	if strings.Contains(out, "not measured") || strings.Count(out, "round 1 of 1") != 3 {
		t.Error(out)
	}
}
