package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"urdma/urdma/top"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const shortestInterval = 100 * time.Millisecond

func newTop() *cobra.Command {
	var o lookOptions
	every, count := time.Second, 0
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch ports, rates and the busiest queue pairs",
		Long: "Watch a running urdmad: what its ports carry and lose, its workers if there are several, and its queue pairs, the busiest first. " +
			"q quits, p pauses, s sorts queue pairs by bytes, messages or segments resent. " +
			"Where standard output is no terminal, and with --count, print plain lines instead: one for each port and each of several workers, and one for the busiest queue pair.",
		Example: "  urdma top\n  urdma top --count 10 | tee log",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < shortestInterval || count < 0 {
				return withStatus(exitUsage, fmt.Errorf("--interval is %v and --count %d, expected at least %v and 0", every, count, shortestInterval))
			}
			feed := top.NewFeed(o.open)
			defer feed.Close()
			if count == 0 && isTerminal(os.Stdin) && isTerminal(os.Stdout) {
				if _, err := feed.Next(); err != nil {
					return err // rather than a page that waits
				}
				return top.Run(os.Stdin, os.Stdout, feed, every)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
			defer stop()
			out := &reader{Writer: cmd.OutOrStdout()}
			err := top.Plain(ctx, out, feed.Next, every, count)
			if out.gone {
				return nil // it has seen enough
			}
			return err
		},
	}
	o.addSocket(cmd)
	cmd.Flags().DurationVar(&every, "interval", every, "`TIME` between two looks, such as 500ms")
	cmd.Flags().IntVar(&count, "count", 0, "stop after `N` intervals, and print plain lines")
	return cmd
}

// reader tells one who reads no more from an urdmad that has ended: both are
// EPIPE.
type reader struct {
	io.Writer
	gone bool
}

func (r *reader) Write(b []byte) (int, error) {
	n, err := r.Writer.Write(b)
	r.gone = r.gone || errors.Is(err, unix.EPIPE)
	return n, err
}

// isTerminal: only a terminal has terminal attributes (tcgetattr(3)).
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
