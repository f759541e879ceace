package report

import (
	"bytes"
	"io"
	"regexp"
)

// heading is a line of nothing but a table's headings.
var heading = regexp.MustCompile(`^[A-Z][A-Z0-9 /%-]+$`)

// broken are the words for what works no longer.
var broken = regexp.MustCompile(`\b(down|ERR|SQE)\b`)

// colours is a terminal's writer: headings are bold, and what is broken is red (ECMA-48's SGR).
type colours struct {
	w    io.Writer
	line []byte // until its end comes
}

// Coloured is a writer for a terminal that takes colours. Text is written by whole
// lines.
func Coloured(w io.Writer) io.Writer { return &colours{w: w} }

func (c *colours) Write(p []byte) (int, error) {
	c.line = append(c.line, p...)
	end := bytes.LastIndexByte(c.line, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	var out []byte
	for line := range bytes.Lines(c.line[:end]) {
		if text := bytes.TrimSuffix(line, []byte("\n")); heading.Match(text) {
			out = append(append(append(out, "\x1b[1m"...), text...), "\x1b[0m\n"...)
		} else {
			out = append(out, broken.ReplaceAll(line, []byte("\x1b[31m$1\x1b[0m"))...)
		}
	}
	c.line = append(c.line[:0], c.line[end:]...)
	_, err := c.w.Write(out)
	return len(p), err
}
