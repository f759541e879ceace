package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// column is a heading and the cell below it for one object.
type column[T any] struct {
	head string
	cell func(*T) string
}

// write prints a table, its headings even where there is no object.
func write[T any](w io.Writer, columns []column[T], objects []T) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.head
	}
	line(t, cells)
	for i := range objects {
		for j, c := range columns {
			cells[j] = c.cell(&objects[i])
		}
		line(t, cells)
	}
	return t.Flush()
}

// line writes cells. urdmad has made text from clients printable already, but a tab would begin another cell.
func line(w io.Writer, cells []string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "\t", " ")
	}
	fmt.Fprintln(w, strings.Join(cells, "\t")) // errors come at Flush
}
