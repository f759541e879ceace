package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is USER_HZ, the unit of processor times in proc(5): 100 on every architecture that Linux has now.
const clockTick = 10 * time.Millisecond

// ProcessorTime returns the processor time that all threads of the process have used so far.
func (p *Process) ProcessorTime() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may contain anything. utime and stime are the 12th and 13th field after it.
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

// Used returns the processor time of an ended process, and of its children for which it has waited; 0 before the end.
func (p *Process) Used() time.Duration {
	if p.Running() || p.cmd.ProcessState == nil {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// ClientMemory counts urdmad's mappings of rings and of clients' memory (memfds, proc_pid_maps(5)), which must
// disappear when the client has ended.
func (n *Node) ClientMemory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.Daemon.PID()))
	if err != nil {
		return 0, err
	}
	return strings.Count(string(text), "/memfd:urdma") - strings.Count(string(text), "/memfd:urdma-memif"), nil
}
