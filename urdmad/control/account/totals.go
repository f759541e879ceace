package account

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What urdmad keeps for itself: ports, logs, connections without HELLO, and
// descriptors on their way to clients; Go's heap and DPDK's memory.
const (
	ownDescriptors = 256
	ownMappings    = 8192
)

// MachineTotals is what this process may hand out, from its limits and the
// machine's.
func MachineTotals() Totals {
	var t Totals
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		t.Descriptors = remains(r.Cur, ownDescriptors)
	}
	if most := maxMapCount(); most > 0 {
		t.Mappings = remains(most, ownMappings)
	}
	t.QueueBytes = Memory() / 2
	return t
}

// remains is what clients get of n; at least a quarter, so that a small limit is
// shared and not all ours.
func remains(n, own uint64) uint64 { return n - min(own, n/4*3) }

// maxMapCount is vm.max_map_count, 0 if unknown.
func maxMapCount() uint64 {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n
}
