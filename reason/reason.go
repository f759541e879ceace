// Package reason is the table of what can go wrong for a program: a number, what
// happened, what that usually means, what to change and where it is written.
//
// Completions have the number in vendor_err, queue pairs in error in urdma show qp,
// and urdmad's flight recorder beside a text that names the objects concerned. The
// package knows neither those objects nor the code that finds the error.
package reason

import (
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Number names a reason. Below 0x0400 and from 0x1000 on it is the cause of a
// Terminate, as layer<<12 | type<<8 | code (RFC 5040 section 4.8, RFC 5041 section 7,
// RFC 5044 section 8).
type Number uint16

// Reason is a row of the table. Texts are whole sentences without their last stop.
type Reason struct {
	Number Number
	What   string // what happened
	Means  string // what that usually means; empty: it is said by What
	Change string // what to change in the program or its setting; empty: nothing
	See    string // man pages, sections of RFCs and specifications
}

// Find is the reason of a number; false if there is none.
func Find(n Number) (Reason, bool) {
	if i, ok := slices.BinarySearchFunc(table, n, func(r Reason, n Number) int { return int(r.Number) - int(n) }); ok {
		return table[i], true
	}
	if n&^0xff == refused {
		return ofErrno(n), true
	}
	return Reason{}, false
}

// What is what happened, by a number alone.
func (n Number) What() string {
	if r, ok := Find(n); ok {
		return r.What
	}
	return fmt.Sprintf("a reason that this version does not know, 0x%04x", uint16(n))
}

// String is the number as programs see it.
func (n Number) String() string { return fmt.Sprintf("0x%04x", uint16(n)) }

// All are all reasons with a row of their own, by number. The caller leaves them as they are.
func All() []Reason { return table }

// refused begins the numbers of requests that were refused; the errno follows.
const refused Number = 0x0600

// OfErrno is the number of a request that was refused with an errno.
func OfErrno(e syscall.Errno) Number { return refused | Number(min(uint(e), 0xff)) }

// Errno is the errno of a request that was refused; 0 for other reasons.
func (n Number) Errno() syscall.Errno {
	if n&^0xff != refused {
		return 0
	}
	return syscall.Errno(n &^ refused)
}

// ofErrno is the reason of an errno that has no row.
func ofErrno(n Number) Reason {
	e := n.Errno()
	name := unix.ErrnoName(e)
	if name == "" {
		name = fmt.Sprint("errno ", uint(e))
	}
	return Reason{Number: n, What: fmt.Sprintf("a request was refused: %s, %s", name, e.Error()), See: "errno(3)"}
}

// event begins the numbers of asynchronous events; enum ibv_event_type follows.
const event Number = 0x0700

// pitfall begins the numbers of pitfalls: mistakes that have not failed yet, of which
// URDMA_WARN warns (enum urdma_abi_pitfall).
const pitfall Number = 0x0800

// Pitfall reports whether the number is that of a pitfall with a row.
func (n Number) Pitfall() bool {
	_, ok := Find(n)
	return ok && n&^0xff == pitfall
}

// OfEvent is the number of an asynchronous event, enum ibv_event_type.
func OfEvent(e uint32) Number { return event | Number(min(e, 0xff)) }
