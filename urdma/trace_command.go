package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"urdma/event"
	"urdma/inspect"
	"urdma/urdma/capture"
	"urdma/urdma/trace"
	"urdma/verbs/abi"

	"github.com/spf13/cobra"
)

// traceOptions are the flags of urdma trace, together with those of urdma capture.
type traceOptions struct {
	captureOptions
	kinds   []string
	mark    string
	dump    bool
	changes bool
}

// shownBytes is how much of each packet urdmad keeps if only its addresses are shown.
const shownBytes = 128

func newTrace() *cobra.Command {
	o := traceOptions{captureOptions: captureOptions{ringBytes: "16MiB"}}
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "show what programs do with a running urdmad, as it happens",
		Long: "Show the calls, work requests, completions, queue pair states and asynchronous events of programs, " +
			"together with the packets of urdmad's ports, one event per line, until interrupted or a limit is " +
			"reached.\n\nKIND is API (a call, with its errno and its time in urdmad), SEND (a posted send was " +
			"accepted), RCV (a message begins to fill a receive), PLACE (bytes of a message were written to " +
			"memory), COMP (a completion), STATE (of a queue pair), ASYNC (an asynchronous event), CM (an event of " +
			"rdma_cm), RTRY (a lost segment is sent again), RNR (a message waits for a receive), CLIENT (a program " +
			"started or ended), LINK (of a port), WHY (why something failed, as in urdma explain), BOOKMARK or " +
			"PACKET.\n\nurdmad's own user and root see everything; others see their own processes.\n\n-o writes a " +
			"file, whose name determines its format. .pcapng: packets, each with the preceding events as its " +
			"comment. .html: a page for any browser, which needs no network. It shows a sequence diagram with a lane " +
			"for each program, queue pair and urdmad, to zoom and filter; click on an event to see its " +
			"fields.\n\n--changes shows only what changes, without calls, " +
			"messages and packets: kinds CLIENT, STATE, ASYNC, CM, LINK and BOOKMARK.\n\n--dump writes the contents of the flight recorder: the last requests, states, events, failed " +
			"completions, retransmitted segments and reasons of each program, also of programs that have failed " +
			"and ended.\n\nEvents that happen faster than they can be written are missing in the trace and " +
			"counted; programs are not affected.",
		Example: "  urdma trace --qp 7e\n  urdma trace --changes --json\n  urdma trace --pid 4711 --kind API,COMP\n  urdma trace -o rping.pcapng\n" +
			"  urdma trace -o rping.html\n" +
			"  urdma trace --mark 'second phase begins'",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "-",
		"`FILE` to write, .pcapng or .html; - is standard output, as text")
	f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	f.StringVar(&o.port, "port", "", "only packets of the port of this `NAME`")
	f.StringVar(&o.qp, "qp", "", "only the queue pair of this `NUMBER`, hexadecimal as urdma show qp prints it")
	f.IntVar(&o.pid, "pid", 0, "only the process `PID`")
	f.StringSliceVar(&o.kinds, "kind", nil, "only events of these `KINDS`, such as SEND,COMP")
	f.Uint64VarP(&o.limits.Frames, "count", "c", 0, "end after `N` events and packets")
	f.DurationVar(&o.limits.Time, "duration", 0, "end after `TIME`, such as 10s")
	f.StringVar(&o.ringBytes, "buffer", o.ringBytes, "`SIZE` of the memory for events that wait to be written")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no messages on standard error")
	f.BoolVar(&o.dump, "dump", false, "print the last events of each program from the flight recorder, and exit")
	f.BoolVar(&o.changes, "changes", false, "only programs that start and end, states, events and links")
	f.StringVar(&o.mark, "mark", "", "set a bookmark with this `TEXT` in every running trace, and exit")
	cmd.MarkFlagsMutuallyExclusive("mark", "output")
	cmd.MarkFlagsMutuallyExclusive("mark", "dump")
	cmd.MarkFlagsMutuallyExclusive("changes", "dump")
	completeNames(cmd, &o.lookOptions)
	return cmd
}

func (o *traceOptions) run(cmd *cobra.Command) error {
	filter, err := o.check()
	if err != nil {
		return withStatus(exitUsage, err)
	}
	source, err := o.open()
	if err != nil {
		return err
	}
	defer source.Close()
	if cmd.Flags().Changed("mark") {
		return source.Mark(o.mark)
	}
	if o.dump {
		return o.past(cmd, source, filter)
	}
	return o.follow(cmd, source, filter, "events and packets", func(s *inspect.Snapshot) (capture.Sink, error) {
		to, err := o.to(cmd, s)
		return trace.Only(o.kinds, to), err
	})
}

// past writes the contents of the flight recorder.
func (o *traceOptions) past(cmd *cobra.Command, source *inspect.Source, filter abi.CaptureRequest) error {
	snapshot, err := source.Fetch()
	if err != nil {
		return err
	}
	to, err := o.to(cmd, snapshot)
	if err != nil {
		return err
	}
	filter.Device, filter.Flags = abi.NoDevice, abi.CapturePast
	_, err = capture.Past(source, filter, trace.Only(o.kinds, to))
	return err
}

// check turns the flags into a filter, except for the device.
func (o *traceOptions) check() (f abi.CaptureRequest, err error) {
	for i, k := range o.kinds {
		o.kinds[i] = strings.ToUpper(k)
		if !slices.Contains(event.Kinds, o.kinds[i]) {
			return f, fmt.Errorf("--kind is %q, expected some of %s", k, strings.Join(event.Kinds, ", "))
		}
	}
	switch suffix := o.form(); {
	case o.mark == "" && o.pid < 0 || o.limits.Time < 0:
		return f, fmt.Errorf("--pid is %d and --duration %v, expected none below 0", o.pid, o.limits.Time)
	case o.output != "-" && suffix != ".pcapng" && suffix != ".html":
		return f, fmt.Errorf("-o is %q, expected a name that ends in .pcapng or .html, or -", o.output)
	}
	size, err := o.bufferSize()
	if err != nil {
		return f, err
	}
	f = abi.CaptureRequest{RingBytes: size, PID: uint32(o.pid), Flags: abi.CaptureEvents}
	if o.changes {
		f.Flags |= abi.CaptureChanges
	}
	if o.form() != ".pcapng" {
		f.SnapBytes = shownBytes
	}
	return f, o.checkQP(&f)
}

// form is the file name suffix of the wanted format.
func (o *traceOptions) form() string { return filepath.Ext(o.output) }

func (o *traceOptions) to(cmd *cobra.Command, s *inspect.Snapshot) (trace.Output, error) {
	switch o.form() {
	case ".pcapng":
		files, err := capture.Open(o.output, o.section(s))
		if err != nil {
			return nil, err
		}
		return trace.Pcapng(files), nil
	case ".html":
		file, err := capture.Create(o.output)
		if err != nil {
			return nil, err
		}
		return trace.HTML(file, head(s)), nil
	}
	if o.json {
		return trace.JSON(cmd.OutOrStdout()), nil
	}
	return trace.Text(cmd.OutOrStdout()), nil
}

// head is a page's description of urdmad.
func head(s *inspect.Snapshot) trace.Head {
	h := trace.Head{Programs: map[uint32]string{}, PID: s.Daemon.PID}
	h.Host, _ = os.Hostname() // left out without a name
	for _, c := range s.Clients {
		h.Programs[uint32(c.PID)] = c.Command
	}
	return h
}
