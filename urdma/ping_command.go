package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"urdma/urdma/measure"
	"urdma/urdma/report"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func newPing() *cobra.Command {
	var o lookOptions
	var p measure.PingOptions
	size := "64"
	cmd := &cobra.Command{
		Use:   "ping PEER",
		Short: "make RDMA Reads from another urdmad, and measure the time",
		Long: "Connect to the responder of the urdmad at PEER, an address or host name, and make one RDMA Read after " +
			"the other. The messages take the same path as a program's, but between the two urdmads only. The data " +
			"of each answer is checked. A Read without an answer counts as lost; retransmitted packets are " +
			"counted, too. Once, urdma ping tests whether the path carries packets of the port's MTU.\n\nIf " +
			"nothing comes back, it explains why. Every urdmad answers unless \"responder\" in its urdma.json is " +
			"\"off\". Exits with status 1 if no Read was answered.",
		Example: "  urdma ping 10.9.0.2\n  urdma ping -c 3 -s 8KiB 10.9.0.2\n  urdma ping -c 1 --json 10.9.0.2",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := humanize.ParseBytes(size)
			if err != nil || n < 1 || n > measure.MaxPing {
				return withStatus(exitUsage, fmt.Errorf("--size %s: expected 1 to %d bytes", size, measure.MaxPing))
			}
			p.Bytes = int(n)
			if p.Count < 0 || p.Interval <= 0 {
				return withStatus(exitUsage, fmt.Errorf("--count %d, --interval %v: expected 0 or more, and more than 0", p.Count,
					p.Interval))
			}
			if p.Timeout <= 0 {
				return withStatus(exitUsage, fmt.Errorf("--timeout %v: expected more than 0", p.Timeout))
			}
			s, err := o.open() // the local urdmad has to run
			if err != nil {
				return err
			}
			s.Close()
			p.Socket, p.Peer = s.Path(), args[0]
			return ping(cmd, &p, o.json)
		},
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the result as JSON, and nothing else")
	f.DurationVarP(&p.Timeout, "timeout", "W", 2*time.Second, "wait for each answer no longer than `TIME`")
	f.IntVarP(&p.Count, "count", "c", 0, "end after `N` Reads (0: when interrupted)")
	f.DurationVarP(&p.Interval, "interval", "i", time.Second, "wait `TIME` between two Reads")
	f.StringVarP(&size, "size", "s", size, "read `SIZE` bytes, such as 8KiB")
	f.BoolVarP(&p.Quiet, "quiet", "q", false, "print only the summary")
	return cmd
}

func ping(cmd *cobra.Command, p *measure.PingOptions, json bool) error {
	// an interrupt still shows the results so far
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := cmd.OutOrStdout()
	lines := out
	if json {
		lines = io.Discard
	}
	r, err := measure.Ping(ctx, lines, p)
	if err != nil {
		return err
	}
	if json {
		err = report.PrintJSON(out, r)
	} else {
		r.Print(out)
	}
	if err == nil && r.Answered == 0 {
		return errors.New("no Read was answered")
	}
	return err
}
