package account

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory returns the number of bytes that this process may use: the machine's memory, or less if
// a cgroup of the process has a lower limit (memory.max of version 2, memory.limit_in_bytes of
// version 1). 0 means unknown.
func Memory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	text, _ := os.ReadFile("/proc/self/cgroup") // none: no cgroups
	return groupMemory("/sys/fs/cgroup", string(text), info.Totalram*uint64(info.Unit))
}

// groupMemory returns the smallest limit of the process's cgroups and their parents, or most if
// there is none. In a container the paths may be the host's; then only the topmost directory
// exists, which is the container's own group.
func groupMemory(root, groups string, most uint64) uint64 {
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		under, file := root, "memory.max"
		if parts[1] != "" {
			under, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
		}
		if parts[1] != "" && parts[1] != "memory" {
			continue
		}
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			most = min(most, groupLimit(filepath.Join(under, path, file), most))
			if path == "/" {
				break
			}
		}
	}
	return most
}

// groupLimit reads a limit. It returns otherwise if the file says "max" or has no number.
func groupLimit(file string, otherwise uint64) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n == 0 {
		return otherwise
	}
	return n
}
