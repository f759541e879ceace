package main

import (
	"fmt"
	"io"
	"time"

	"urdma/inspect"
	"urdma/urdma/top"

	"github.com/spf13/cobra"
)

func newTop() *cobra.Command {
	var o lookOptions
	every, count, by := time.Second, 0, string(top.ByBytes)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch ports, rates and the busiest queue pairs",
		Long: "Show the activity of a running urdmad until interrupted: the traffic and losses of its ports, its " +
			"workers if there are several, and its queue pairs, the busiest first. If standard output is no " +
			"terminal, and with --count, print lines instead: one for each port, one for each of several workers, " +
			"and one for the busiest queue pair.",
		Example: "  urdma top\n  urdma top --sort messages\n  urdma top --count 10 | tee log",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < shortestInterval || count < 0 {
				return withStatus(exitUsage, fmt.Errorf("--interval is %v and --count %d, expected at least %v and 0", every, count,
					shortestInterval))
			}
			order := top.Order(by)
			if order != top.ByBytes && order != top.ByMessages && order != top.ByResent {
				return withStatus(exitUsage, fmt.Errorf("--sort is %q, expected %s, %s or %s", by, top.ByBytes, top.ByMessages,
					top.ByResent))
			}
			out := cmd.OutOrStdout()
			return o.watch(cmd.Context(), every, count, func(last, now *inspect.Snapshot) error {
				if width, height, ok := screen(out); ok && count == 0 {
					_, err := io.WriteString(out, clear+top.View{Last: last, Now: now, Order: order, Width: width,
						Height: height}.Page())
					return err
				}
				if last == now {
					return nil // no interval has passed
				}
				return top.Lines(out, last, now, order)
			})
		},
	}
	o.addSocket(cmd)
	cmd.Flags().DurationVar(&every, "interval", every, "`TIME` between two updates, such as 500ms")
	cmd.Flags().IntVar(&count, "count", 0, "stop after `N` intervals, and print lines")
	cmd.Flags().StringVar(&by, "sort", by, "`WHAT` to sort the queue pairs by: bytes, messages or resent")
	return cmd
}
