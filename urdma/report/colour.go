package report

import (
	"bytes"
	"io"
	"regexp"
)

// heading matches a line of table headings.
var heading = regexp.MustCompile(`^[A-Z][A-Z0-9 /%-]+$`)

// broken matches the states of what does not work.
var broken = regexp.MustCompile(`\b(down|ERR|SQE)\b`)

// colours is a terminal's writer. It prints headings bold and broken states red (SGR of ECMA-48).
type colours struct {
	w    io.Writer
	line []byte // an unfinished line
}

// Coloured returns a writer for a terminal with colours. It writes whole lines.
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
