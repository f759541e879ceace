package measure

import (
	"fmt"
	"io"
	"text/tabwriter"

	"urdma/inspect"
	"urdma/urdma/report"
)

// Print shows what was measured as a table.
func (r *PerfResult) Print(w io.Writer) error {
	way := fmt.Sprintf("%s, MTU %d", r.Driver, r.MTU)
	if r.Path == inspect.PathHost {
		way = "within this urdmad, no wire"
	}
	fmt.Fprintf(w, "RDMA between %s and %s (%s); the data was compared\n\n", r.Local, r.Peer, way)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "TEST\tBYTES\tMESSAGES/s\tGbit/s\tLEAST\tMEDIAN\t99%\tMOST\tSENT AGAIN\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		times := "-\t-\t-\t-"
		bandwidth := fmt.Sprintf("%.3f", row.Bandwidth()/1e9)
		if row.Median > 0 {
			times = report.Duration(row.Least) + "\t" + report.Duration(row.Median) + "\t" + report.Duration(row.P99) + "\t" + report.Duration(row.Most)
			bandwidth = "-"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t\n", row.Test, row.Bytes, report.Count(row.Rate()), bandwidth, times,
			report.Percent(float64(row.Resent), float64(row.Segments)))
	}
	return t.Flush()
}
