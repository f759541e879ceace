package session

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// silence is the time without a response after which the program logs what it waits for.
const silence = 2 * time.Second

// reportSilence logs once in a session that urdmad does not answer, with its process id and state. calling must
// be held.
func (s *Session) reportSilence() {
	if s.silenceReported {
		return
	}
	s.silenceReported = true
	args := []any{"seconds", silence.Seconds()}
	if raw, err := s.control.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // fails only on a closed connection
			if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && c.Pid != 0 {
				args = append(args, "process", c.Pid, "user", c.Uid, "state", stateOf(int(c.Pid)))
			}
		})
	}
	slog.Warn("verbs: urdmad has not answered; still waiting for it", args...)
}

// stateOf returns the state of a process in words (proc_pid_stat(5)).
func stateOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := strings.LastIndex(string(text), ") ") // the end of the command, which may contain any character
	if i < 0 {
		return "unknown"
	}
	switch string(text[i+2 : i+3]) {
	case "R":
		return "running"
	case "S":
		return "sleeping"
	case "D":
		return "in a system call that cannot be interrupted"
	case "T", "t":
		return "stopped; SIGCONT lets it go on"
	case "Z", "X":
		return "ended"
	}
	return "unknown"
}
