package suite

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"urdma/bench/results"

	"golang.org/x/sys/unix"
)

// machine says where a run happens. What the kernel doesn't tell stays empty.
func machine() results.Machine {
	m := results.Machine{Processors: runtime.NumCPU(), LoadBefore: load()}
	m.Processor = after("/proc/cpuinfo", "model name")
	fmt.Sscan(after("/proc/meminfo", "MemTotal"), &m.MemoryMiB)
	m.MemoryMiB >>= 10 // it was in KiB
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	governor, _ := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") // none: no frequency scaling here
	m.Governor = strings.TrimSpace(string(governor))
	return m
}

// after is what follows the colon of the first line that begins with key.
func after(file, key string) string {
	text, _ := os.ReadFile(file) // none: not known
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// load is the load average of the last minute, five and fifteen.
func load() (l [3]float64) {
	text, _ := os.ReadFile("/proc/loadavg") // none: zeros
	fmt.Sscan(string(text), &l[0], &l[1], &l[2])
	return l
}
