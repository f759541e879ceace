package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is USER_HZ, which proc(5) counts processor time in: 100 on every
// architecture Linux has now.
const clockTick = 10 * time.Millisecond

// ProcessorTime is what the process has used so far, all threads together.
func (p *Process) ProcessorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may contain anything; utime and stime are the
	// 12th and 13th field behind it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", p.PID(), stat)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// Used is the processor time of a process that has ended, and of its children
// that it waited for; 0 before.
func (p *Process) Used() time.Duration {
	if p.Running() || p.cmd.ProcessState == nil {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// ClientMemory counts the mappings that urdmad has of rings and of clients'
// memory (memfds, proc_pid_maps(5)): what a death must give back.
func (n *Node) ClientMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.Daemon.PID()))
	if err != nil {
		return 0, err
	}
	return strings.Count(string(text), "/memfd:urdma") - strings.Count(string(text), "/memfd:urdma-memif"), nil
}
