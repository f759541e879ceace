package labtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// MemoryGroup makes a memory cgroup that has a control file, whose name differs between versions 2 and 1, and also
// returns that file's path; or it skips the test. The cgroup is removed at the end of the test, when it has no
// processes any more.
func MemoryGroup(t *testing.T, version2, version1 string) (dir, control string) {
	t.Helper()
	for _, v := range []struct{ under, control string }{
		{"/sys/fs/cgroup" + ownGroup("0::"), version2},
		{"/sys/fs/cgroup/memory" + ownGroup("memory:"), version1},
	} {
		dir = filepath.Join(v.under, fmt.Sprintf("urdma-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		control = filepath.Join(dir, v.control)
		if _, err := os.Stat(control); err != nil {
			os.Remove(dir)
			continue
		}
		t.Cleanup(func() {
			for end := time.Now().Add(lab.Patience); os.Remove(dir) != nil && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
		})
		return dir, control
	}
	t.Skipf("SKIPPED: no memory cgroup with %s can be made here", version2)
	return "", ""
}

// ownGroup returns this process's cgroup, from its line in /proc/self/cgroup.
func ownGroup(line string) string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for l := range strings.Lines(string(text)) {
		if _, path, ok := strings.Cut(l, line); ok {
			return strings.TrimSpace(path)
		}
	}
	return "/"
}
