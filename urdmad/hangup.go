package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hangUps distinguishes the two meanings of SIGHUP: a request to reload the configuration, and
// the loss of the terminal from which urdmad was started.
type hangUps struct {
	signals  chan os.Signal
	terminal bool // urdmad had a terminal at the start
}

func watchHangUps() *hangUps {
	h := &hangUps{signals: make(chan os.Signal, 1), terminal: hasTerminal()}
	signal.Notify(h.signals, unix.SIGHUP)
	return h
}

func (h *hangUps) stop() { signal.Stop(h.signals) }

// final reports, after a signal, whether the terminal is gone, so that urdmad must end.
func (h *hangUps) final() bool { return h.terminal && !hasTerminal() }

// hasTerminal reports whether /dev/tty can be opened, which is possible while there is a
// controlling terminal that has not hung up (tty(4)).
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
