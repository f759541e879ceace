package account

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGroupMemory reads the limits of cgroups of both versions, as they are shown
// on a host and inside a container.
func TestGroupMemory(t *testing.T) {
	const machine = 1000 << 20
	for _, c := range []struct {
		name, groups string
		files        map[string]string
		want         uint64
	}{
		{"none", "", nil, machine},
		{"version 2", "0::/a/b\n", map[string]string{"a/b/memory.max": "300\n"}, 300},
		{"version 2, its parent's", "0::/a/b\n", map[string]string{"a/memory.max": "200\n", "a/b/memory.max": "max\n"}, 200},
		{"version 2, a container's root", "0::/\n", map[string]string{"memory.max": "100\n"}, 100},
		{"version 2, another's path", "0::/../x\n", map[string]string{"memory.max": "100\n"}, 100},
		{"version 1", "5:devices:/\n4:memory:/a\n0::/\n", map[string]string{"memory/a/memory.limit_in_bytes": "400\n"}, 400},
		{"version 1 in a container", "4:memory:/docker/1\n", map[string]string{"memory/memory.limit_in_bytes": "500\n"}, 500},
		{"version 1, no limit", "4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "9223372036854771712\n"},
			machine},
		{"another controller's", "5:devices:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "4\n"}, machine},
		{"nonsense", "x\n::\n0::/a\n", map[string]string{"a/memory.max": "\n"}, machine},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				file = filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := groupMemory(root, c.groups, machine); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

// TestMemory: this machine has some.
func TestMemory(t *testing.T) {
	if n := Memory(); n < 16<<20 {
		t.Errorf("%d bytes of memory", n)
	}
}
