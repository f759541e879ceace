package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"urdma/config"

	"golang.org/x/sys/unix"
)

// unitFailure is the failure of a systemd unit of urdmad.
type unitFailure struct {
	user   bool // the unit is the user's, not the machine's
	reason string
}

func (f *unitFailure) scope() string {
	if f.user {
		return "--user"
	}
	return "--system"
}

func (f *unitFailure) Error() string {
	return fmt.Sprintf("systemd's urdmad.service did not start: %s; journalctl %s --unit urdmad has its log", f.reason,
		f.scope())
}

// config is the file that the unit of the package reads; "" if the user's has none.
func (f *unitFailure) config() string {
	if !f.user {
		return "/etc/urdma/urdma.json"
	}
	return config.UserFile()
}

// failedUnit says why urdmad's systemd unit has failed, the user's or the system's. It considers the unit with this
// socket, or either if socket is "". It ignores a failure before since: the caller may have started another urdmad
// by hand since then. It returns nil if no unit failed, or without systemd.
func failedUnit(socket string, since time.Duration) *unitFailure {
	for _, f := range []*unitFailure{{user: true}, {user: false}} {
		own := "/run/urdma/urdmad.sock"
		if f.user {
			own = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "urdma/urdmad.sock")
		}
		if socket != "" && socket != own {
			continue
		}
		out, _ := exec.Command("systemctl", f.scope(), "show",
			"--property=ActiveState,InactiveEnterTimestampMonotonic,StatusText", "urdmad.service").Output()
		unit := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			unit[name] = value
		}
		at, err := strconv.ParseInt(unit["InactiveEnterTimestampMonotonic"], 10, 64)
		if err == nil && unit["ActiveState"] == "failed" && time.Duration(at)*time.Microsecond >= since {
			f.reason = cmp.Or(unit["StatusText"], f.lastError(), "it gives no reason")
			return f
		}
	}
	return nil
}

// lastError is the unit's last error in the journal; "" if it can't be read.
func (f *unitFailure) lastError() string {
	out, _ := exec.Command("journalctl", f.scope(), "--unit=urdmad.service", "--quiet", "--no-pager", "--output=cat",
		"--priority=err", "--lines=1").Output()
	return strings.TrimSpace(string(out))
}

// monotonic is the time on systemd's clock.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return time.Duration(now.Nano())
}
