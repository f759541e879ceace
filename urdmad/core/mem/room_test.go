package mem

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNullWhenThereIsRoom: if there was no address space for the first null region, a later request tries again. The
// limit applies to a process, so the test has its own.
func TestNullWhenThereIsRoom(t *testing.T) {
	if os.Getenv("URDMA_TEST_LIMIT") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestNullWhenThereIsRoom$", "-test.v")
		c.Env = append(os.Environ(), "URDMA_TEST_LIMIT=1")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &was); err != nil {
		t.Fatal(err)
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var pages uint64
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		t.Fatal(err)
	}
	less := unix.Rlimit{Cur: pages*pageSize + 2<<30, Max: was.Max} // room for Go
	if err := unix.Setrlimit(unix.RLIMIT_AS, &less); err != nil {
		t.Fatal(err)
	}
	_, err = NewNull(1)
	if again := unix.Setrlimit(unix.RLIMIT_AS, &was); again != nil {
		t.Fatal(again)
	}
	if !errors.Is(err, unix.ENOMEM) {
		t.Fatalf("without room: %v", err)
	}
	if _, err := NewNull(1); err != nil {
		t.Errorf("with room: %v", err)
	}
}
