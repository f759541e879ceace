package suite

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"urdma/bench/results"

	"golang.org/x/sys/unix"
)

// machine describes this machine. What the kernel doesn't report stays empty.
func machine() results.Machine {
	m := results.Machine{Processors: runtime.NumCPU(), LoadBefore: load()}
	m.Processor = after("/proc/cpuinfo", "model name")
	fmt.Sscan(after("/proc/meminfo", "MemTotal"), &m.MemoryMiB)
	m.MemoryMiB >>= 10 // the kernel reports KiB
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	// none without frequency scaling
	governor, _ := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	m.Governor = strings.TrimSpace(string(governor))
	return m
}

// after returns the text after the colon in the first line that begins with key.
func after(file, key string) string {
	text, _ := os.ReadFile(file) // unknown without the file
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load is the load average of the last one, five and fifteen minutes.
func load() (l [3]float64) {
	text, _ := os.ReadFile("/proc/loadavg") // zeros without the file
	fmt.Sscan(string(text), &l[0], &l[1], &l[2])
	return l
}
