package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"time"

	"urdma/inspect"

	"golang.org/x/sys/unix"
)

// shortestInterval is the least time between two snapshots: each costs urdmad some time.
const shortestInterval = 100 * time.Millisecond

// watch calls show with a new snapshot and the previous one, each time an interval has passed: count times, or
// until interrupted if count is 0. In the first call both are the same.
func (o *lookOptions) watch(ctx context.Context, every time.Duration, count int,
	show func(last, now *inspect.Snapshot) error) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	source, err := o.open()
	if err != nil {
		return err
	}
	defer source.Close()
	t := time.NewTicker(every)
	defer t.Stop()
	var last *inspect.Snapshot
	for n := 0; count == 0 || n <= count; n++ {
		now, err := source.Fetch()
		if err != nil {
			return err
		}
		if last == nil {
			last = now
		}
		if err := show(last, now); err != nil {
			return err
		}
		last = now
		if n == count && count > 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
	return nil
}

// clear clears the terminal and moves to its first line.
const clear = "\x1b[H\x1b[2J"

// screen returns the size of the terminal w; ok is false if w is no terminal.
func screen(w io.Writer) (width, height int, ok bool) {
	if w != os.Stdout {
		return 0, 0, false
	}
	size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
