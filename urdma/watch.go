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

// shortestInterval is between two snapshots: making one takes urdmad some time.
const shortestInterval = 100 * time.Millisecond

// watch has show called with a snapshot, and with another each time an interval has passed,
// beside the one before: count times, or until interrupted where count is 0. At first both are
// the same.
func (o *lookOptions) watch(ctx context.Context, every time.Duration, count int, show func(last, now *inspect.Snapshot) error) error {
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

// clear empties the terminal and goes to its first line.
const clear = "\x1b[H\x1b[2J"

// screen is the terminal that w is, and its size; ok is false where it is none.
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
