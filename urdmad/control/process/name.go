package process

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// Printable replaces characters that could manipulate a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

// CString returns the printable text before the first NUL.
func CString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return Printable(string(b))
}

// Name returns a client's name for logs, made from the command name that it has sent.
func Name(command []byte, pid uint32) string {
	return fmt.Sprintf("%s[%d]", CString(command), pid)
}
