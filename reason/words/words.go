// Package words is the table of failures that a program can meet: for each number of package reason what happened,
// what that usually means, what to change, and where to read about it.
package words

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"urdma/reason"
)

// Reason is a row of the table. Texts are sentences without the final full stop.
type Reason struct {
	Number reason.Number
	What   string // what happened
	Means  string // what that usually means; empty if What says it
	Change string // what to change in the program or its settings; empty: nothing
	See    string // man pages, sections of RFCs and specifications
}

// Find returns the reason of a number, false if there is none.
func Find(n reason.Number) (Reason, bool) {
	byNumber := func(r Reason, n reason.Number) int { return int(r.Number) - int(n) }
	if i, ok := slices.BinarySearchFunc(table, n, byNumber); ok {
		return table[i], true
	}
	if n&^0xff == reason.Refused {
		return ofErrno(n), true
	}
	return Reason{}, false
}

// What says what happened, or gives the number if it is unknown.
func What(n reason.Number) string {
	if r, ok := Find(n); ok {
		return r.What
	}
	return fmt.Sprintf("a reason that this version does not know, 0x%04x", uint16(n))
}

// All returns all rows of the table, by number. The caller must not change them.
func All() []Reason { return table }

// ofErrno is the reason for an errno without a row in the table.
func ofErrno(n reason.Number) Reason {
	e := n.Errno()
	name := unix.ErrnoName(e)
	if name == "" {
		name = fmt.Sprint("errno ", uint(e))
	}
	return Reason{Number: n, What: fmt.Sprintf("a request was refused: %s, %s", name, e.Error()), See: "errno(3)"}
}

// pitfall is the base of numbers for pitfalls: mistakes that have not failed yet, of which URDMA_WARN warns (enum
// urdma_abi_pitfall).
const pitfall reason.Number = 0x0800

// Pitfall reports whether the number is a pitfall in the table.
func Pitfall(n reason.Number) bool {
	_, ok := Find(n)
	return ok && n&^0xff == pitfall
}
