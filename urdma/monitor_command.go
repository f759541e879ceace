package main

import (
	"urdma/inspect"
	"urdma/urdma/capture"
	"urdma/urdma/trace"
	"urdma/verbs/abi"

	"github.com/spf13/cobra"
)

func newMonitor() *cobra.Command {
	o := traceOptions{captureOptions: captureOptions{ringBytes: "1MiB"}}
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "show changes in a running urdmad, as they happen",
		Long: "Show one line for each change, until interrupted: CLIENT (a program started or ended), STATE (of a " +
			"queue pair), ASYNC (an asynchronous event), CM (an event of rdma_cm), LINK (of a port), BOOKMARK " +
			"(urdma trace --mark). urdmad's own user and root see everything; others see their own processes, and " +
			"no links. urdma trace shows each call and message.",
		Example: "  urdma monitor\n  urdma monitor --pid 4711 --json\n  urdma monitor --duration 1m",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.output.Path = "-"
			filter, err := o.check()
			if err != nil {
				return withStatus(exitUsage, err)
			}
			filter.Flags |= abi.CaptureChanges
			source, err := o.open()
			if err != nil {
				return err
			}
			defer source.Close()
			return o.follow(cmd, source, filter, "events", func(s *inspect.Snapshot) (capture.Sink, error) {
				to, err := o.to(cmd, s)
				return trace.Only(nil, to), err
			})
		},
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	f.StringVar(&o.qp, "qp", "", "only the queue pair of this `NUMBER`, hexadecimal as urdma show qp prints it")
	f.IntVar(&o.pid, "pid", 0, "only the process `PID`")
	f.DurationVar(&o.limits.Time, "duration", 0, "end after `TIME`, such as 10s")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no messages on standard error")
	return cmd
}
