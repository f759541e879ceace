package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// limitMemory has the kernel kill what takes more than so many bytes in a cgroup, swap
// included.
func limitMemory(t *testing.T, group string, bytes int) {
	t.Helper()
	for _, f := range []struct {
		name  string
		value int
		must  bool // the others are there where there is swap
	}{
		{"memory.max", bytes, true}, {"memory.swap.max", 0, false},
		{"memory.limit_in_bytes", bytes, true}, {"memory.memsw.limit_in_bytes", bytes, false},
	} {
		path := filepath.Join(group, f.name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if err := os.WriteFile(path, fmt.Append(nil, f.value), 0); err != nil && f.must {
			t.Fatal(err)
		}
	}
}

// mostMemory is the most that a cgroup's processes took at once.
func mostMemory(group string) string {
	for _, name := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
		if text, err := os.ReadFile(filepath.Join(group, name)); err == nil {
			return strings.TrimSpace(string(text)) + " bytes"
		}
	}
	return "an unknown number of bytes"
}

// TestMemoryLimit: registering 48 MiB, deregistering and ending take no more than the pages
// that are moving, and a fork as much again as is registered, as it does of pinned memory.
func TestMemoryLimit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: not root: no cgroup can be made")
	}
	const registered, more = 48 << 20, 6 << 20 // of which the program takes some
	for test, most := range map[string]int{
		"group": registered + more, "group_forks": 2*registered + more, "group_threads": 2*registered + more,
	} {
		t.Run(test, func(t *testing.T) {
			group, _ := memoryGroup(t)
			limitMemory(t, group, most)
			way{name: "in a cgroup", binary: "query", group: group}.run(t, test, 0)
			t.Logf("%s of %d at once", mostMemory(group), most)
		})
	}
}
