// Command urdma-bench measures urdma and compares it with other ways of moving data; make bench runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"urdma/bench/report"
	"urdma/bench/results"
	"urdma/bench/suite"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is wrong usage of the command.
type usageError struct{ error }

func main() {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(interrupted)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "urdma-bench:", err)
	if errors.As(err, &usageError{}) {
		os.Exit(exitUsage)
	}
	os.Exit(exitFailure)
}

// options are the flags.
type options struct {
	build, before, out, only, markdown string
	rounds                             int
	seconds                            float64
	sweeps, list                       bool
	limit                              time.Duration
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "urdma-bench",
		Short: "measure urdma on this machine, compared with kernel sockets",
		Long: "Run perftest's programs over urdmads of their own and, in the same rounds, the installed programs to " +
			"compare with: iperf3, sockperf, dpdk-testpmd. " +
			"Prints medians, spreads, and ratios with urdma's targets; a ratio that not every round confirms is marked. " +
			"Writes a JSON file and SVG plots below --out. " +
			"Kernel sockets between two hosts need network namespaces: root, or a machine that allows user namespaces. " +
			"Measurements that are not possible are listed and left out. " +
			"Running urdmads are not touched, but like all other running programs they affect the figures.",
		Example: "  build/urdma-bench\n  build/urdma-bench --rounds 3 --only 'loopback|copying'",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (urdma-bench --help tells more)", err)}
	})
	f := cmd.Flags()
	f.StringVar(&o.build, "build", "build", "`directory` with urdmad, urdma and liburdma.so")
	f.StringVar(&o.before, "before", "",
		"also measure the build in `DIRECTORY`, in the same rounds; the ratio of each figure takes the place of the targets")
	f.StringVarP(&o.out, "out", "o", "build/bench", "`directory` for the output")
	f.StringVar(&o.only, "only", "", "measure only names that `REGEXP` matches (--list)")
	f.StringVar(&o.markdown, "markdown", "",
		"also write `FILE` in the form of docs/BENCHMARKS.md, and its plots into the directory benchmarks next to it")
	f.IntVar(&o.rounds, "rounds", 5, "how often each figure is measured")
	f.Float64Var(&o.seconds, "seconds", 2, "length of one measurement")
	f.DurationVar(&o.limit, "limit", 12*time.Minute+30*time.Second, "begin no round that would end after `TIME`; 0: none")
	f.BoolVar(&o.sweeps, "sweeps", true, "also measure, once, over sizes")
	f.BoolVar(&o.list, "list", false, "print the names of all measurements")
	return cmd
}

func (o *options) run(ctx context.Context, out, progress io.Writer) error {
	if o.list {
		for _, name := range suite.Names() {
			fmt.Fprintln(out, name)
		}
		return nil
	}
	if o.rounds < 1 || o.seconds <= 0 || o.limit < 0 {
		return usageError{fmt.Errorf("--rounds %d --seconds %g --limit %v: the first two are above 0, the limit is not below",
			o.rounds, o.seconds, o.limit)}
	}
	only, err := o.filter()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	r, err := suite.Run(suite.Options{Context: ctx, Build: o.build, Before: o.before, Rounds: o.rounds,
		Seconds: o.seconds, Only: only, Sweeps: o.sweeps && only == nil && o.before == "", Limit: o.limit, Log: progress})
	if err != nil {
		return err
	}
	fmt.Fprintln(progress)
	return errors.Join(report.Text(out, r), o.write(r), context.Cause(ctx))
}

func (o *options) filter() (*regexp.Regexp, error) {
	if o.only == "" {
		return nil, nil
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, usageError{fmt.Errorf("--only: %w", err)}
	}
	return only, nil
}

// write writes the run's values and its plots into o.out.
func (o *options) write(r *results.Run) error {
	err := errors.Join(r.Write(filepath.Join(o.out, "run-"+r.Started.Format(time.RFC3339)+".json")),
		report.Plots(o.out, r))
	if o.markdown != "" {
		err = errors.Join(err, o.page(r))
	}
	return err
}

// page writes o.markdown, and its plots into a directory next to it.
func (o *options) page(r *results.Run) error {
	const plots = "benchmarks"
	dir := filepath.Join(filepath.Dir(o.markdown), plots)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(o.markdown)
	if err != nil {
		return err
	}
	return errors.Join(report.Plots(dir, r), report.Markdown(f, r, plots), f.Close())
}
