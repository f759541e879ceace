package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"urdma/event"
	"urdma/reason"
	"urdma/reason/words"
	"urdma/urdma/capture"
	"urdma/urdma/report"
	"urdma/urdma/trace"
	"urdma/verbs/abi"

	"github.com/spf13/cobra"
)

// pastBytes is enough room for all flight recorders.
const pastBytes = 16 << 20

// explainOptions are the flags of urdma explain.
type explainOptions struct {
	lookOptions
	pid   int
	count int
	list  bool
}

// explained is a reason and the objects concerned, in the form that --json prints.
type explained struct {
	event.Event
	Number string `json:"number"`
	Means  string `json:"means,omitempty"`
	Change string `json:"change,omitempty"`
	See    string `json:"see,omitempty"`
}

func newExplain() *cobra.Command {
	o := explainOptions{count: 10}
	cmd := &cobra.Command{
		Use:   "explain [qp QPN | NUMBER]",
		Short: "say why something failed: what happened, what it usually means, what to change",
		Long: "Say why completions failed, queue pairs went to the error state, and requests and connections were " +
			"refused: the latest failures that a running urdmad remembers, oldest first, including those of " +
			"programs that have ended.\n\nqp QPN: only failures of this queue pair. NUMBER, such as 0x0412, is a " +
			"number from vendor_err: its row of the table, which needs no urdmad; --list prints the table. Each " +
			"end of a connection is explained by its own urdmad: ask the peer's urdmad about the peer.\n\nurdmad's " +
			"own user and root see everything; others see their own processes. With urdma exec --explain the " +
			"explanations appear on the program's standard error when a failure happens.",
		Example: "  urdma explain\n  urdma explain qp 7e\n  urdma explain 0x0102\n  urdma explain --pid 4711 --json",
		Args:    usage(cobra.MaximumNArgs(2)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.IntVar(&o.pid, "pid", 0, "only the process `PID`")
	f.IntVarP(&o.count, "count", "c", o.count, "the last `N` failures; 0: all")
	f.BoolVar(&o.list, "list", false, "print all reasons")
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	switch {
	case o.pid < 0 || o.count < 0:
		return withStatus(exitUsage, fmt.Errorf("--pid is %d and --count %d, expected none below 0", o.pid, o.count))
	case o.list && len(args) == 0:
		return o.table(out, words.All())
	case o.list, len(args) == 2 && args[0] != "qp", len(args) == 1 && args[0] == "qp":
		return withStatus(exitUsage, errors.New("expected nothing, qp QPN, NUMBER or --list; use: "+cmd.UseLine()))
	case len(args) == 1:
		r, err := reasonOf(args[0])
		if err != nil {
			return withStatus(exitUsage, err)
		}
		return o.table(out, []words.Reason{r})
	}
	c := captureOptions{}
	filter := abi.CaptureRequest{RingBytes: pastBytes, Device: abi.NoDevice, PID: uint32(o.pid), Flags: abi.CapturePast}
	if len(args) == 2 {
		c.qp = args[1]
		if err := c.checkQP(&filter); err != nil {
			return withStatus(exitUsage, err)
		}
	}
	found, err := o.past(filter)
	if err != nil {
		return err
	}
	if o.json {
		return report.PrintJSON(out, found)
	}
	if len(found) == 0 {
		_, err = fmt.Fprintln(out, o.nothing(c.qp))
	}
	for i := range found {
		if err == nil {
			err = found[i].print(out)
		}
	}
	return err
}

// nothing says that no failure was found for what the user asked about.
func (o *explainOptions) nothing(qp string) string {
	of := ""
	if qp != "" {
		of = " of queue pair " + qp
	}
	if o.pid != 0 {
		of += fmt.Sprintf(" of process %d", o.pid)
	}
	return "nothing" + of + " has failed that urdmad knows of"
}

// reasonOf returns the reason for a number in C's notation.
func reasonOf(text string) (words.Reason, error) {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil {
		return words.Reason{}, fmt.Errorf("%q is no number, expected one of vendor_err such as 0x0102", text)
	}
	r, ok := words.Find(reason.Number(n))
	if !ok {
		return r, fmt.Errorf("there is no reason %v; urdma explain --list prints all", reason.Number(n))
	}
	return r, nil
}

// past asks urdmad for the latest reasons.
func (o *explainOptions) past(filter abi.CaptureRequest) ([]explained, error) {
	source, err := o.open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	found := []explained{}
	_, err = capture.Past(source, filter, trace.Only([]string{"WHY"}, trace.Each(func(e *trace.Event) error {
		v := explained{Event: e.Event, Number: e.Reason.String()}
		if r, ok := words.Find(e.Reason); ok {
			v.What, v.Means, v.Change, v.See = r.What, r.Means, r.Change, r.See
		}
		found = append(found, v)
		return nil
	})))
	if o.count > 0 && len(found) > o.count {
		found = found[len(found)-o.count:]
	}
	return found, err
}

func (o *explainOptions) table(w io.Writer, rows []words.Reason) error {
	list := []explained{}
	for _, r := range rows {
		list = append(list, explained{Event: event.Event{What: r.What, Reason: r.Number}, Number: r.Number.String(),
			Means: r.Means, Change: r.Change, See: r.See})
	}
	if o.json {
		return report.PrintJSON(w, list)
	}
	for i := range list {
		if err := list[i].print(w); err != nil {
			return err
		}
	}
	return nil
}

// print writes a reason as a paragraph.
func (e *explained) print(w io.Writer) error {
	var b strings.Builder
	if !e.Time.IsZero() {
		b.WriteString(e.Time.Format("15:04:05.000 "))
	}
	if e.PID != 0 {
		fmt.Fprintf(&b, "process %d, ", e.PID)
	}
	if e.QPN != 0 {
		fmt.Fprintf(&b, "queue pair %06x, ", e.QPN)
	}
	b.WriteString(e.Number)
	if e.WRID != nil {
		fmt.Fprintf(&b, ", %s, wr_id %#x", e.Status, *e.WRID)
	}
	b.WriteString("\n")
	for _, part := range []struct{ head, text string }{{"what", e.What}, {"", e.Text}, {"means", e.Means},
		{"change", e.Change}, {"see", e.See}} {
		if part.text != "" {
			fmt.Fprintf(&b, "  %-7s %s\n", part.head, part.text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
