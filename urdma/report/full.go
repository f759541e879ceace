package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"urdma/inspect"
)

// ErrNone says that no object has the given name.
var ErrNone = errors.New("there is none")

// Full prints all that is known of one object, a line for each value, or with asJSON as an array. id names the
// object as in its table.
func (k *Kind) Full(w io.Writer, s *inspect.Snapshot, id string, asJSON bool) error {
	found := k.one(s, id)
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if string(text) == "[]" {
		return fmt.Errorf("%s %s %s: %w", k.Name, k.ID, id, ErrNone)
	}
	if asJSON {
		return PrintJSON(w, found)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	first := true
	if err := values(d, "", func(name, value string) {
		if name == "" { // the next of several objects
			if !first {
				fmt.Fprintln(t)
			}
			first = false
			return
		}
		fmt.Fprintf(t, "%s\t%s\n", strings.TrimSuffix(name, "_ns"), strings.ReplaceAll(value, "\t", " "))
	}); err != nil {
		return err
	}
	return t.Flush()
}

// values calls tell for each value of a JSON text, in order. name is the path to the value; an object of the
// outermost array begins with an empty name.
func values(d *json.Decoder, path string, tell func(name, value string)) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	delim, container := t.(json.Delim)
	if !container {
		tell(path, readable(path, t))
		return nil
	}
	if path == "" && delim == '{' {
		tell("", "")
	}
	for d.More() {
		inner := path
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			inner = strings.TrimPrefix(path+"."+name.(string), ".")
		}
		if err := values(d, inner, tell); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// readable formats a value as tables do: keys and queue pair numbers in hexadecimal, times and sizes with units.
func readable(path string, v json.Token) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	n, number := v.(json.Number)
	if !number {
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(v)); err == nil {
			return instant(at)
		}
		return dash(fmt.Sprint(v))
	}
	i, err := n.Int64()
	switch {
	case err != nil:
		return n.String()
	case name == "qpn":
		return qpn(uint32(i))
	case name == "lkey" || name == "rkey":
		return fmt.Sprintf("%08x", i)
	case name == "access":
		return access(uint32(i))
	case strings.HasSuffix(name, "_ns"):
		return Duration(i)
	case (strings.HasPrefix(name, "bytes") || strings.HasSuffix(name, "bytes") || name == "length") && i >= 1024:
		return fmt.Sprintf("%d (%s)", i, Bytes(uint64(i)))
	}
	return n.String()
}
