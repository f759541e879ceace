package systemd

import (
	"fmt"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Supervised tells whether a service manager wants to hear from us.
func Supervised() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Ready says that start-up, or a reload, is complete.
func Ready(status string) error { return notify(daemon.SdNotifyReady, statusLine(status)) }

// Reloading says that a reload began. Ready ends it. Type=notify-reload wants
// the time on CLOCK_MONOTONIC, to tell this reload from earlier ones.
func Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("systemd: clock: %w", err)
	}
	return notify(daemon.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000), statusLine("reloading"))
}

// Stopping says that the end has begun.
func Stopping() error { return notify(daemon.SdNotifyStopping, statusLine("stopping")) }

// Status sets the line that systemctl status shows.
func Status(text string) error { return notify(statusLine(text)) }

// Failed leaves the reason of a failed start for
// systemctl status.
func Failed(reason error) error { return notify(statusLine("failed: " + reason.Error())) }

// statusLine keeps a text with line breaks from becoming further assignments.
func statusLine(text string) string {
	return "STATUS=" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func notify(assignments ...string) error {
	if _, err := daemon.SdNotify(false, strings.Join(assignments, "\n")); err != nil {
		return fmt.Errorf("systemd: telling %s: %w", os.Getenv("NOTIFY_SOCKET"), err)
	}
	return nil
}
