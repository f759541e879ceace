package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"urdma/inspect"
	"urdma/urdma/report"

	"github.com/spf13/cobra"
)

// showOptions are the flags of urdma show.
type showOptions struct {
	lookOptions
	filter  report.Filter
	qp      string
	columns []string
	wide    bool

	kind *report.Kind
	id   string // the one object to show in full, or ""
}

func newShow() *cobra.Command {
	var o showOptions
	var names []string
	for _, k := range report.Kinds {
		names = append(names, k.Name)
	}
	all := strings.Join(names, ", ")
	cmd := &cobra.Command{
		Use:   "show OBJECT [NAME]",
		Short: "list the objects of a running urdmad, or show one in full",
		Long: "List the objects of one kind: " +
			all +
			". With NAME, a value of the list's QPN, NAME, PID, PD, LKEY or HANDLE column, show everything about " +
			"one object. --wide prints all columns; without it, the table fits a terminal of 80 columns as a rule.\n\nThe last columns name the process that owns the object. SEND and RECV are posted work " +
			"requests and the queue's slots, FILL completions not yet polled, WINDOW segments in flight and the " +
			"congestion window, READS the Reads that we may have outstanding and those that we serve. PATH of a " +
			"region is how urdmad accesses it: shared pages, or the fallback path through /proc. PATH of a " +
			"connection is wire, or host between two processes of one urdmad. ACCESS stands for local write, " +
			"remote write, remote read, remote atomic, bind windows, zero based. (inside), the last row of port, " +
			"counts messages between programs of this urdmad, which use no packets.\n\nah (address handles) exist " +
			"only in their programs; urdmad has none to show.",
		Example: "  urdma show qp\n  urdma show qp 871cec\n  urdma show mr --pid 4711 --json\n  urdma show qp --columns " +
			"qpn,state,peer",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withStatus(exitUsage, errors.New("OBJECT is missing, allowed: "+all))
			}
			return usage(cobra.MaximumNArgs(2))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args, all); err != nil {
				return err
			}
			s, err := o.fetch()
			if err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), s)
		},
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print the objects as a JSON array, with more fields")
	f.IntVar(&o.filter.PID, "pid", 0, "only objects of the process `PID`")
	f.StringVar(&o.filter.Port, "port", "", "only objects of the port `NAME`")
	f.StringVar(&o.qp, "qp", "", "only objects that the queue pair `QPN` uses, or that use it")
	f.StringSliceVar(&o.columns, "columns", nil, "`HEADS` of the columns to print, in this order")
	f.BoolVarP(&o.wide, "wide", "w", false, "print all columns, which need a wide terminal")
	o.complete(cmd, names)
	return cmd
}

// check turns arguments and flags into a selection.
func (o *showOptions) check(args []string, all string) error {
	if o.kind = report.Find(args[0]); o.kind == nil {
		return withStatus(exitUsage, fmt.Errorf("%q is no kind of object, allowed: %s", args[0], all))
	}
	if o.kind.Missing != "" {
		return errors.New(o.kind.Missing)
	}
	if len(args) == 2 {
		o.id = args[1]
	}
	if o.filter.PID < 0 {
		return withStatus(exitUsage, fmt.Errorf("--pid is %d, expected at least 0", o.filter.PID))
	}
	for _, c := range o.columns {
		if !slices.ContainsFunc(o.kind.Heads(), func(h string) bool { return strings.EqualFold(h, c) }) {
			return withStatus(exitUsage, fmt.Errorf("--columns: %q is none of %s", c, strings.Join(o.kind.Heads(), ",")))
		}
	}
	if o.columns == nil && !o.wide {
		o.columns = o.kind.Brief
	}
	if o.qp == "" {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(o.qp, "0x"), 16, 24)
	if err != nil || n == 0 {
		return withStatus(exitUsage, fmt.Errorf("--qp is %q, expected a hexadecimal number of 1 to ffffff, as urdma show "+
			"qp prints it", o.qp))
	}
	o.filter.QPN = uint32(n)
	return nil
}

func (o *showOptions) print(w io.Writer, s *inspect.Snapshot) error {
	s = o.filter.Apply(s)
	switch {
	case o.id != "":
		return o.kind.Full(w, s, o.id, o.json)
	case o.json:
		return o.kind.JSON(w, s)
	}
	return o.kind.Table(coloured(w), s, o.columns...)
}

// complete lets shells complete kinds, and names from the running urdmad.
func (o *showOptions) complete(cmd *cobra.Command, kinds []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return kinds, cobra.ShellCompDirectiveNoFileComp
		case 1:
			return o.namesOf(args[0]), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	completeNames(cmd, &o.lookOptions)
}

// completeNames lets shells complete --port and --qp to existing names.
func completeNames(cmd *cobra.Command, o *lookOptions) {
	for _, name := range []string{"port", "qp"} {
		// fails only for an unknown flag
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return o.namesOf(name), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// namesOf is empty if no urdmad runs: a completion can't report errors.
func (o *lookOptions) namesOf(kind string) []string {
	k := report.Find(kind)
	if k == nil || k.Missing != "" {
		return nil
	}
	s, err := o.fetch()
	if err != nil {
		return nil
	}
	return k.Names(s)
}
