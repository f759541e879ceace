package account

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Resources that urdmad keeps for itself: for ports, logs, connections without HELLO, descriptors
// being sent to clients, Go's heap and DPDK's memory.
const (
	ownDescriptors = 256
	ownMappings    = 8192
)

// MachineTotals returns the amounts that this process may hand out, from its own and the
// machine's limits.
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

// remains returns the part of n left for clients after own is taken off; at least a quarter, so
// that a small limit is not used by urdmad alone.
func remains(n, own uint64) uint64 { return n - min(own, n/4*3) }

// maxMapCount returns vm.max_map_count, 0 if unknown.
func maxMapCount() uint64 {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n
}
