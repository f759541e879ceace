package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is one mistake in a configuration file.
type Error struct {
	File string
	// Path is the JSON path, such as "ports[0].mtu"; "" for the whole file.
	Path string
	// Line counts from 1; 0 if the file could not be read.
	Line int
	// Found is the value in the file, Allowed says which values are allowed.
	Found, Allowed string
	// Hint suggests, in a sentence, the nearest known name for an unknown property.
	Hint string
	// Unknown marks a property that the schema doesn't have: an error for Check, a warning for Load.
	Unknown bool
	// value marks a value of the right type that is out of range: all others can be read and checked.
	value bool
	// Err is the underlying error of a system call, if any.
	Err error
}

// Error gives "urdma.json:4: ports[0].mtu: found 70000, allowed: an integer …".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Path != "" {
		b.WriteString(": " + shortPath(e.Path))
	}
	b.WriteString(": found " + e.Found)
	if e.Allowed != "" {
		b.WriteString(", allowed: " + e.Allowed)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// shortPath keeps a name of a megabyte out of the log.
func shortPath(path string) string {
	const limit = 200
	if utf8.RuneCountInString(path) <= limit {
		return path
	}
	return string([]rune(path)[:limit]) + "…"
}

func (e *Error) Unwrap() error { return e.Err }

// Errors are all mistakes in one file, in the order of the file.
type Errors []*Error

const linesShown = 50

// Error has one line for each mistake, up to a number that a person would read.
func (es Errors) Error() string {
	var lines []string
	for _, e := range es[:min(len(es), linesShown)] {
		lines = append(lines, e.Error())
	}
	if more := len(es) - linesShown; more > 0 {
		lines = append(lines, fmt.Sprintf("%s: … and %d more", es[0].File, more))
	}
	return strings.Join(lines, "\n")
}

func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// has reports whether a value is refused already.
func (es Errors) has(path string) bool {
	return slices.ContainsFunc(es, func(e *Error) bool { return e.Path == path && !e.Unknown })
}

// sort puts a misspelt property, of the errors in a line, before the property that is missing for that reason.
func (es Errors) sort() {
	missed := func(e *Error) int {
		if e.Unknown {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(missed(a), missed(b)), cmp.Compare(a.Path, b.Path))
	})
}

// orNil turns an empty list into a nil error.
func (es Errors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	es.sort()
	return es
}
