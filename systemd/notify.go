package systemd

import (
	"fmt"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Supervised reports whether a service manager expects notifications.
func Supervised() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Ready reports that start-up, or a reload, is complete.
func Ready(status string) error { return notify(daemon.SdNotifyReady, statusLine(status)) }

// Reloading reports that a reload began; Ready ends it. Type=notify-reload demands the time on CLOCK_MONOTONIC,
// which distinguishes this reload from earlier ones.
func Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return fmt.Errorf("systemd: clock: %w", err)
	}
	return notify(daemon.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000), statusLine("reloading"))
}

// Stopping reports that urdmad is shutting down.
func Stopping() error { return notify(daemon.SdNotifyStopping, statusLine("stopping")) }

// Status sets the line that systemctl status shows.
func Status(text string) error { return notify(statusLine(text)) }

// Failed sets the reason of a failed start, which systemctl status shows.
func Failed(reason error) error { return notify(statusLine("failed: " + reason.Error())) }

// statusLine replaces line breaks in a text, which would begin further assignments.
func statusLine(text string) string {
	return "STATUS=" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func notify(assignments ...string) error {
	if _, err := daemon.SdNotify(false, strings.Join(assignments, "\n")); err != nil {
		return fmt.Errorf("systemd: telling %s: %w", os.Getenv("NOTIFY_SOCKET"), err)
	}
	return nil
}
