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
	"golang.org/x/sys/unix"
)

// measureOptions are the flags that ping and perf share.
type measureOptions struct {
	lookOptions
	timeout time.Duration
}

func (o *measureOptions) add(cmd *cobra.Command) {
	o.addSocket(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON, and nothing else")
	cmd.Flags().DurationVarP(&o.timeout, "timeout", "W", 2*time.Second, "wait for each answer no longer than `TIME`")
}

// options names the urdmad here, which has to run.
func (o *measureOptions) options(peer string) (measure.Options, error) {
	s, err := o.open()
	if err != nil {
		return measure.Options{}, err
	}
	defer s.Close()
	if o.timeout <= 0 {
		return measure.Options{}, withStatus(exitUsage, fmt.Errorf("--timeout %v: expected more than 0", o.timeout))
	}
	return measure.Options{Socket: s.Path(), Peer: peer, Timeout: o.timeout}, nil
}

// interruptible ends with Ctrl-C, so that what was measured until then is shown.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

func newPing() *cobra.Command {
	var o measureOptions
	var p measure.PingOptions
	size := "64"
	cmd := &cobra.Command{
		Use:   "ping PEER",
		Short: "make RDMA Reads of another urdmad, and take the time",
		Long: "Connect to the responder of the urdmad at PEER, an address or a name of one, and make one RDMA Read after the other: from urdmad to urdmad, " +
			"through everything that a program's message passes, but for the other program. Each answer's bytes are checked. " +
			"A Read without an answer is lost; packets that were lost and sent again are counted as well. Whether the way carries packets of the port's MTU is tried once.\n\n" +
			"Where nothing comes back, it says what is wrong. Every urdmad answers unless \"responder\" in its urdma.json is \"off\". " +
			"Exits with status 1 where no Read was answered.",
		Example: "  urdma ping 10.9.0.2\n  urdma ping -c 3 -s 8KiB 10.9.0.2\n  urdma ping -c 1 --json 10.9.0.2",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Bytes, err = parseSize("--size", size, measure.MaxPing()); err != nil {
				return err
			}
			if p.Count < 0 || p.Interval <= 0 {
				return withStatus(exitUsage, fmt.Errorf("--count %d, --interval %v: expected 0 or more, and more than 0", p.Count, p.Interval))
			}
			if p.Options, err = o.options(args[0]); err != nil {
				return err
			}
			return o.ping(cmd, &p)
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.IntVarP(&p.Count, "count", "c", 0, "end after `N` Reads (0: when interrupted)")
	f.DurationVarP(&p.Interval, "interval", "i", time.Second, "wait `TIME` between two Reads")
	f.StringVarP(&size, "size", "s", size, "read `SIZE` bytes, such as 8KiB")
	f.BoolVarP(&p.Quiet, "quiet", "q", false, "print the sum alone")
	return cmd
}

func (o *measureOptions) ping(cmd *cobra.Command, p *measure.PingOptions) error {
	ctx, stop := interruptible()
	defer stop()
	out := cmd.OutOrStdout()
	lines := out
	if o.json {
		lines = io.Discard
	}
	r, err := measure.Ping(ctx, lines, p)
	if err != nil {
		return err
	}
	if o.json {
		err = report.PrintJSON(out, r)
	} else {
		r.Print(out)
	}
	if err == nil && r.Answered == 0 {
		return errors.New("no Read was answered")
	}
	return err
}

func newPerf() *cobra.Command {
	var o measureOptions
	p := measure.PerfOptions{Time: 500 * time.Millisecond}
	var sizes []string
	cmd := &cobra.Command{
		Use:   "perf PEER",
		Short: "measure bandwidth and latency to another urdmad",
		Long: "Connect to the responder of the urdmad at PEER, an address or a name of one, and measure RDMA Writes and RDMA Reads: first one by one, each until it is known " +
			"to be there or here, then as many as fit.\n\nNo program is needed on the other side, but \"responder\": \"perf\" in its urdma.json, because this takes what the way " +
			"and the poll loops of both sides give; within one urdmad it works without. Before measuring, data is written, read back and compared. On a terminal a line shows how far it is.",
		Example: "  urdma perf 10.9.0.2\n  urdma perf --time 5s --size 64KiB,1MiB 10.9.0.2",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			for _, s := range sizes {
				n, err := parseSize("--size", s, measure.MaxPerf())
				if err != nil {
					return err
				}
				p.Sizes = append(p.Sizes, n)
			}
			if p.Time <= 0 {
				return withStatus(exitUsage, fmt.Errorf("--time %v: expected more than 0", p.Time))
			}
			if p.Options, err = o.options(args[0]); err != nil {
				return err
			}
			return o.perf(cmd, &p)
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.DurationVarP(&p.Time, "time", "t", p.Time, "measure for `TIME` each")
	f.StringSliceVarP(&sizes, "size", "s", nil, "messages of `SIZE` bytes, such as 64,4KiB,1MiB (default: five from 64 bytes to 1MiB)")
	return cmd
}

func (o *measureOptions) perf(cmd *cobra.Command, p *measure.PerfOptions) error {
	ctx, stop := interruptible()
	defer stop()
	if _, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS); err == nil {
		p.Progress = cmd.ErrOrStderr()
	}
	r, err := measure.Perf(ctx, p)
	if r == nil {
		return err
	}
	if o.json {
		return errors.Join(err, report.PrintJSON(cmd.OutOrStdout(), r))
	}
	return errors.Join(err, r.Print(cmd.OutOrStdout()))
}

func parseSize(flag, text string, most int) (int, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < 1 || n > uint64(most) {
		return 0, withStatus(exitUsage, fmt.Errorf("%s %s: expected 1 to %d bytes", flag, text, most))
	}
	return int(n), nil
}
