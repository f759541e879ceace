// Package reason is the table of failures that a program can meet: a number, what happened, what that usually
// means, what to change, and where to read about it.
//
// The number is in a completion's vendor_err, in the error of a queue pair in urdma show qp, and in urdmad's flight
// recorder, there with a text that names the objects concerned. The package knows neither these objects nor the
// code that finds the error.
package reason

import (
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Number identifies a reason. Below 0x0400 and from 0x1000 on it is the cause of a Terminate, as layer<<12 |
// type<<8 | code (RFC 5040 section 4.8, RFC 5041 section 7, RFC 5044 section 8).
type Number uint16

// Reason is a row of the table. Texts are sentences without the final full stop.
type Reason struct {
	Number Number
	What   string // what happened
	Means  string // what that usually means; empty if What says it
	Change string // what to change in the program or its settings; empty: nothing
	See    string // man pages, sections of RFCs and specifications
}

// Find returns the reason of a number, false if there is none.
func Find(n Number) (Reason, bool) {
	if i, ok := slices.BinarySearchFunc(table, n, func(r Reason, n Number) int { return int(r.Number) - int(n) }); ok {
		return table[i], true
	}
	if n&^0xff == refused {
		return ofErrno(n), true
	}
	return Reason{}, false
}

// What says what happened, or gives the number if it is unknown.
func (n Number) What() string {
	if r, ok := Find(n); ok {
		return r.What
	}
	return fmt.Sprintf("a reason that this version does not know, 0x%04x", uint16(n))
}

// String is the number in the form that programs print.
func (n Number) String() string { return fmt.Sprintf("0x%04x", uint16(n)) }

// All returns all rows of the table, by number. The caller must not change them.
func All() []Reason { return table }

// refused is the base of numbers for refused requests; the errno is added.
const refused Number = 0x0600

// OfErrno is the number for a request that was refused with an errno.
func OfErrno(e syscall.Errno) Number { return refused | Number(min(uint(e), 0xff)) }

// Errno is the errno of a refused request; 0 for other reasons.
func (n Number) Errno() syscall.Errno {
	if n&^0xff != refused {
		return 0
	}
	return syscall.Errno(n &^ refused)
}

// ofErrno is the reason for an errno without a row in the table.
func ofErrno(n Number) Reason {
	e := n.Errno()
	name := unix.ErrnoName(e)
	if name == "" {
		name = fmt.Sprint("errno ", uint(e))
	}
	return Reason{Number: n, What: fmt.Sprintf("a request was refused: %s, %s", name, e.Error()), See: "errno(3)"}
}

// event is the base of numbers for asynchronous events; enum ibv_event_type is added.
const event Number = 0x0700

// pitfall is the base of numbers for pitfalls: mistakes that have not failed yet, of which URDMA_WARN warns (enum
// urdma_abi_pitfall).
const pitfall Number = 0x0800

// Pitfall reports whether the number is a pitfall in the table.
func (n Number) Pitfall() bool {
	_, ok := Find(n)
	return ok && n&^0xff == pitfall
}

// OfEvent is the number of an asynchronous event, enum ibv_event_type.
func OfEvent(e uint32) Number { return event | Number(min(e, 0xff)) }
