package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"urdma/schema"
)

// suggest finds the property that an unknown one probably stands for: a similar name in the same object, or the
// same name elsewhere in the file.
func suggest(parent, name string) string {
	siblings := childrenOf(schema.Generic(parent))
	if best := Nearest(name, siblings); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	for _, p := range schema.Properties() {
		if lastStep(p.Path) == name {
			return fmt.Sprintf("%q is known as %s", name, p.Path)
		}
	}
	return "known here: " + strings.Join(siblings, ", ")
}

// drivers are DPDK's drivers of virtual devices that can be a port. The first three are in the documentation.
var drivers = []string{"net_af_packet", "net_af_xdp", "net_tap", "net_bonding", "net_failsafe", "net_memif", "net_null",
	"net_pcap", "net_ring",
	"net_softnic", "net_vdev_netvsc", "net_vhost", "net_virtio_user"}

// suggestVdev finds the device that an unknown one probably stands for, or "" if none is similar.
func suggestVdev(text string) string {
	name, args, given := strings.Cut(text, ",")
	base := strings.TrimRight(name, "0123456789")
	if given {
		args = "," + args
	}
	best := Nearest(base, append([]string{"loopback", "memif", "udp", "tcp"}, drivers...))
	if slices.Contains(drivers[:3], "net_"+base) {
		best = "net_" + base
	}
	if best == "" {
		return ""
	}
	if strings.HasPrefix(best, "net_") {
		best += name[len(base):]
	}
	return fmt.Sprintf("did you mean %q?", best+args)
}

// suggestDriver is suggestVdev for a DPDK device with a misspelt driver.
func suggestDriver(vdev string) string {
	name, _, _ := strings.Cut(vdev, ",")
	driver, ofNet := strings.CutPrefix(strings.TrimRight(name, "0123456789"), "net_")
	if !ofNet || slices.Contains(drivers, "net_"+driver) {
		return ""
	}
	return suggestVdev(vdev)
}

// suggestNetwork adds the prefix length of a single host to an address given in place of a network.
func suggestNetwork(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", netip.PrefixFrom(a, a.BitLen()))
}

func childrenOf(generic string) []string {
	var names []string
	for _, p := range schema.Properties() {
		if parentPath(p.Path) == generic || strings.TrimSuffix(p.Path, lastStep(p.Path)) == generic+"." {
			names = append(names, lastStep(p.Path))
		}
	}
	return names
}

func lastStep(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// Nearest returns the candidate at the least edit distance, or "" if none is within a third of the name's length.
func Nearest(name string, candidates []string) string {
	best, least := "", max(2, len(name)/3)+1
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, c := range candidates {
		d := distance(name, c)
		if d < least && d < len(c) {
			best, least = c, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of adjacent characters (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 100 {
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
