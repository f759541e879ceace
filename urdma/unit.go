package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// failedUnit says why urdmad's systemd unit has failed, the user's or the system's. It considers the unit with this
// socket, or either if socket is "". It ignores a failure before since: the caller may have started another urdmad
// by hand since then. It returns nil if no unit failed, or without systemd.
func failedUnit(socket string, since time.Duration) error {
	for scope, own := range map[string]string{
		"--user":   filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "urdma/urdmad.sock"),
		"--system": "/run/urdma/urdmad.sock",
	} {
		if socket != "" && socket != own {
			continue
		}
		out, _ := exec.Command("systemctl", scope, "show",
			"--property=ActiveState,InactiveEnterTimestampMonotonic,StatusText", "urdmad.service").Output()
		unit := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			unit[name] = value
		}
		at, err := strconv.ParseInt(unit["InactiveEnterTimestampMonotonic"], 10, 64)
		if err == nil && unit["ActiveState"] == "failed" && time.Duration(at)*time.Microsecond >= since {
			return fmt.Errorf("systemd's urdmad.service did not start: %s; journalctl %s --unit urdmad has its log",
				unit["StatusText"], scope)
		}
	}
	return nil
}

// monotonic is the time on systemd's clock.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return time.Duration(now.Nano())
}
