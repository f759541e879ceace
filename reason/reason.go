// Package reason has the numbers of failures that a program can meet. Package words has the meaning of each number.
//
// The number is in a completion's vendor_err, in the error of a queue pair in urdma show qp, and in urdmad's flight
// recorder, there with a text that names the objects concerned. The package knows neither texts nor these objects,
// nor the code that finds the error.
package reason

import (
	"fmt"
	"syscall"
)

// Number identifies a reason. Below 0x0400 and from 0x1000 on it is the cause of a Terminate, as layer<<12 |
// type<<8 | code (RFC 5040 section 4.8, RFC 5041 section 7, RFC 5044 section 8).
type Number uint16

// Bases of numbers.
const (
	Refused Number = 0x0600 // of a refused request; the errno is added
	Event   Number = 0x0700 // of an asynchronous event; enum ibv_event_type is added
)

// String is the number in the form that programs print.
func (n Number) String() string { return fmt.Sprintf("0x%04x", uint16(n)) }

// OfErrno is the number for a request that was refused with an errno.
func OfErrno(e syscall.Errno) Number { return Refused | Number(min(uint(e), 0xff)) }

// Errno is the errno of a refused request; 0 for other reasons.
func (n Number) Errno() syscall.Errno {
	if n&^0xff != Refused {
		return 0
	}
	return syscall.Errno(n &^ Refused)
}
