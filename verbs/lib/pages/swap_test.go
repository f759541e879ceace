package pages

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab/labtest"
)

// memoryGroup makes a memory cgroup, and names the file by which its processes' memory is
// pushed out to swap.
func memoryGroup(t *testing.T) (dir, reclaim string) {
	t.Helper()
	return labtest.MemoryGroup(t, "memory.reclaim", "memory.force_empty")
}

// swapFor has the machine swap for as long as the test runs.
func swapFor(t *testing.T, mebibytes int) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "urdma-swap") // /tmp may be memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "swap")
	if err := os.WriteFile(file, bytes.Repeat([]byte{0}, mebibytes<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkswap", file).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: mkswap: %v %s", err, out)
	}
	if out, err := exec.Command("swapon", file).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: this machine takes no swap file: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("swapoff", file).CombinedOutput(); err != nil {
			t.Errorf("swapoff %s: %v %s", file, err, out)
		}
	})
}

func swappedOut(t *testing.T) (pages int) {
	t.Helper()
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		t.Fatal(err)
	}
	if _, after, ok := strings.Cut(string(text), "\npswpout "); ok {
		_, _ = fmt.Sscan(after, &pages)
	}
	return pages
}

// TestSwap: pages that are in swap move as others do.
func TestSwap(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: not root: no cgroup and no swap can be made")
	}
	swapFor(t, 256)
	before := swappedOut(t)
	group, reclaim := memoryGroup(t)
	t.Setenv("URDMA_TORTURE_RECLAIM", reclaim)
	way{name: "in a cgroup", binary: "query", group: group}.run(t, "swap", 0)
	if n := swappedOut(t) - before; n == 0 { // the kernel pushes out as many as it likes
		t.Error("no page was swapped out")
	}
}
