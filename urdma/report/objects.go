package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"urdma/inspect"
)

// Kind is a kind of object.
type Kind struct {
	Name string
	// Missing says why there are no such objects; "" if there can be some.
	Missing string
	// ID says what identifies an object: a queue pair number, a port's name.
	ID string
	// Brief has the headings of the columns that fit a terminal of 80 columns; nil: all do.
	Brief []string
	table func(w io.Writer, s *inspect.Snapshot, columns []string) error
	list  func(*inspect.Snapshot) any
	heads []string
	names func(*inspect.Snapshot) []string
	one   func(s *inspect.Snapshot, id string) any
}

// ErrMissing says that urdmad has no objects of a kind.
var ErrMissing = errors.New("no such objects yet")

// Kinds lists every kind of object.
var Kinds = []Kind{
	withInside(kind("port", "NAME", ports, func(s *inspect.Snapshot) []inspect.Port { return s.Ports })),
	kind("worker", "WORKER", workers, (*inspect.Snapshot).AllWorkers),
	kind("client", "PID", clients, func(s *inspect.Snapshot) []inspect.Client { return s.Clients }),
	kind("pd", "PD", domains, func(s *inspect.Snapshot) []inspect.Domain { return s.Domains }),
	kind("mr", "LKEY", regions, func(s *inspect.Snapshot) []inspect.Region { return s.Regions }),
	kind("mw", "RKEY", windows, func(s *inspect.Snapshot) []inspect.Window { return s.Windows }),
	kind("cq", "HANDLE", cqs, func(s *inspect.Snapshot) []inspect.CQ { return s.CQs }),
	kind("qp", "QPN", qps, func(s *inspect.Snapshot) []inspect.QP { return s.QPs }),
	kind("srq", "HANDLE", srqs, func(s *inspect.Snapshot) []inspect.SRQ { return s.SRQs }),
	{Name: "ah", Missing: "an address handle is its program's alone: each datagram brings its address, and urdmad has " +
		"none to show"},
	kind("connection", "HANDLE", connections, func(s *inspect.Snapshot) []inspect.Connection { return s.Connections }),
	kind("listener", "HANDLE", listeners, func(s *inspect.Snapshot) []inspect.Listener { return s.Listeners }),
	kind("peer", "ADDRESS", peers, (*inspect.Snapshot).Peers),
	kind("neighbour", "ADDRESS", neighbours, func(s *inspect.Snapshot) []inspect.Neighbour { return s.Neighbours }),
	kind("group", "ADDRESS", groups, func(s *inspect.Snapshot) []inspect.Group { return s.Groups }),
	kind("limit", "LIMIT", limits, func(s *inspect.Snapshot) []inspect.Limit { return s.Limits }),
	kind("inject", "NUMBER", injections, func(s *inspect.Snapshot) []inspect.Injection { return s.Injections }),
	kind("warning", "NUMBER", warnings, func(s *inspect.Snapshot) []inspect.Warning { return s.Warnings }),
}

// brief80 has the brief columns of those kinds whose whole table is wider than 80 columns.
var brief80 = map[string][]string{
	"port":       {"NAME", "DRIVER", "ADDRESS", "MTU", "TRANSPORT", "LINK", "RX-BYTES", "TX-BYTES"},
	"client":     {"CLIENT", "PID", "UID", "MR", "QP", "SHARED", "FALLBACK", "COMMAND"},
	"mr":         {"LKEY", "LENGTH", "ACCESS", "PATH", "REASON", "PID", "COMMAND"},
	"mw":         {"RKEY", "MR", "LENGTH", "ACCESS", "QPN", "PID", "COMMAND"},
	"cq":         {"HANDLE", "DEVICE", "STATE", "FILL", "CHANNEL", "ARMED", "PID", "COMMAND"},
	"qp":         {"QPN", "TYPE", "STATE", "ERROR", "PEER", "OUT", "IN", "PID", "COMMAND"},
	"srq":        {"HANDLE", "DEVICE", "FILL", "LIMIT", "QPS", "PID", "COMMAND"},
	"connection": {"ID", "STATE", "LOCAL", "PEER", "QPN", "PID", "COMMAND"},
	"peer":       {"ADDRESS", "PORT", "PROTOCOL", "QPS", "HEARD", "RTT", "RESENT"},
}

// withInside adds a row to the ports for messages that do not leave urdmad.
func withInside(k Kind) Kind {
	k.table = func(w io.Writer, s *inspect.Snapshot, wanted []string) error {
		rows := s.Ports
		if t := s.Totals; t != nil {
			n := t.LocalMessages + t.Local
			rows = append(slices.Clip(rows),
				inspect.Port{Name: insideName, RxPackets: n, TxPackets: n, RxBytes: t.LocalBytes, TxBytes: t.LocalBytes,
					LinkUp: true})
		}
		return write(w, choose(ports, wanted), rows)
	}
	return k
}

// insideName replaces a port's name for messages between two queue pairs of one urdmad, which have no packets.
const insideName = "(inside)"

// ofPort is a cell that is a dash in the row of insideName.
func ofPort(cell func(*inspect.Port) string) func(*inspect.Port) string {
	return func(p *inspect.Port) string {
		if p.Name == insideName {
			return dash("")
		}
		return cell(p)
	}
}

// kind describes objects by their columns; id is the heading of the column that identifies an object.
func kind[T any](name, id string, columns []column[T], list func(*inspect.Snapshot) []T) Kind {
	idOf := columns[0].cell
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.head)
		if c.head == id {
			idOf = c.cell
		}
	}
	return Kind{Name: name, ID: id, Brief: brief80[name], heads: heads,
		table: func(w io.Writer, s *inspect.Snapshot, wanted []string) error {
			return write(w, choose(columns, wanted), list(s))
		},
		list: func(s *inspect.Snapshot) any { return list(s) },
		names: func(s *inspect.Snapshot) (out []string) {
			for _, v := range list(s) {
				out = append(out, idOf(&v))
			}
			return out
		},
		one: func(s *inspect.Snapshot, id string) any {
			found := []T{}
			for _, v := range list(s) {
				if strings.TrimLeft(idOf(&v), "0") == strings.TrimLeft(strings.ToLower(id), "0x") || idOf(&v) == id {
					found = append(found, v)
				}
			}
			return found
		}}
}

// choose returns the columns with the wanted headings, in that order, or all columns.
func choose[T any](columns []column[T], wanted []string) []column[T] {
	if len(wanted) == 0 {
		return columns
	}
	var out []column[T]
	for _, head := range wanted {
		for _, c := range columns {
			if strings.EqualFold(c.head, head) {
				out = append(out, c)
			}
		}
	}
	return out
}

// Find finds a kind by its name, singular or plural; nil if there is none.
func Find(name string) *Kind {
	for i := range Kinds {
		if k := &Kinds[i]; name == k.Name || name == k.Name+"s" {
			return k
		}
	}
	return nil
}

// Heads are the headings of the table.
func (k *Kind) Heads() []string { return k.heads }

// Names are the objects' names as in their table.
func (k *Kind) Names(s *inspect.Snapshot) []string {
	if k.names == nil {
		return nil
	}
	return k.names(s)
}

// Table prints a table of the objects, with the columns of these headings or all.
func (k *Kind) Table(w io.Writer, s *inspect.Snapshot, columns ...string) error {
	if k.Missing != "" {
		return fmt.Errorf("%w: %s", ErrMissing, k.Missing)
	}
	return k.table(w, s, columns)
}

// JSON prints the objects of a kind as an array.
func (k *Kind) JSON(w io.Writer, s *inspect.Snapshot) error {
	if k.Missing != "" {
		return fmt.Errorf("%w: %s", ErrMissing, k.Missing)
	}
	return PrintJSON(w, k.list(s))
}

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
