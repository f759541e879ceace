package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hangUps tells the two meanings of SIGHUP apart: a request to read the
// configuration again, and the end of the terminal urdmad was started from.
type hangUps struct {
	signals  chan os.Signal
	terminal bool // there was one at the start
}

func watchHangUps() *hangUps {
	h := &hangUps{signals: make(chan os.Signal, 1), terminal: hasTerminal()}
	signal.Notify(h.signals, unix.SIGHUP)
	return h
}

func (h *hangUps) stop() { signal.Stop(h.signals) }

// final tells, after a signal, that the terminal is gone, so that urdmad must
// end as any program there.
func (h *hangUps) final() bool { return h.terminal && !hasTerminal() }

// hasTerminal: /dev/tty can be opened as long as there is a controlling
// terminal that has not hung up (tty(4)).
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
