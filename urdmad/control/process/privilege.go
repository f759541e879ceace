package process

import (
	"os"
	"strconv"
	"strings"
)

// UnprivilegedPortStart returns the first port number that any user may bind
// (net.ipv4.ip_unprivileged_port_start, ip(7)) in urdmad's network namespace.
func UnprivilegedPortStart() int {
	const usual = 1024
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return usual
	}
	return n
}

// Capable reports whether a process has a capability (capabilities(7)) in urdmad's own user
// namespace. The root user of another user namespace has capabilities there only.
func Capable(pid int, capability uint) bool {
	return pid > 0 && inOurs(pid, "user", func() bool {
		return procText(pid, "uid_map") == procText(os.Getpid(),
			"uid_map")
	}) &&
		capabilities(pid)&(1<<capability) != 0
}

// capabilities returns the effective capabilities of a process.
func capabilities(pid int) uint64 {
	_, line, _ := strings.Cut(procText(pid, "status"), "\nCapEff:")
	line, _, _ = strings.Cut(line, "\n")
	n, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return n
}
