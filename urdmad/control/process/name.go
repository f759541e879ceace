package process

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// Printable replaces what would play tricks on a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

// CString is the text before the first NUL, printable.
func CString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return Printable(string(b))
}

// Name is a client's name for logs, from the command that it says it is.
func Name(command []byte, pid uint32) string {
	return fmt.Sprintf("%s[%d]", CString(command), pid)
}
