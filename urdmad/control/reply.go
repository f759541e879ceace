package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/memfd"
	"urdma/verbs/abi"
)

// Reply is a response without its header: the bytes of the structure, with room for the header in
// front, and descriptors that the client gets copies of.
type Reply struct {
	Body []byte
	FDs  []int
	Done func() // called after the response was sent or sending failed
	of   Object // object whose handle the request began with; nil: none
}

// Respond returns a reply with a response structure.
func Respond[T any](v *T, fds ...int) Reply { return Reply{Body: abi.Bytes(v), FDs: fds} }

// RespondText returns a reply that hands the client a text in a file.
func RespondText(file string, text []byte) (Reply, error) {
	fd, err := memfd.Text(file, text)
	if err != nil {
		return Reply{}, err
	}
	r := Respond(&abi.InspectResponse{Bytes: uint64(len(text))}, fd)
	r.Done = func() { _ = unix.Close(fd) } // the client has its copy
	return r, nil
}

// Request answers one type of message; only b's length has been checked, against the header.
type Request func(x *Session, b []byte, r *Reply) error

// Answer turns a function into a Request. The function's first argument is the session, or the object
// whose handle follows the header.
func Answer[O, M any](answer func(O, *M, *Reply) error) Request {
	return func(x *Session, b []byte, r *Reply) (err error) {
		m, ok := abi.Decode[M](b)
		if !ok {
			return fmt.Errorf("control: message has %d bytes, expected %d: %w", len(b), abi.Size[M](), syscall.EINVAL)
		}
		o, ok := any(x).(O)
		if !ok {
			if o, err = Find[O](x, binary.NativeEndian.Uint32(b[abi.Size[abi.Header]():])); err != nil {
				return err
			}
		}
		err = answer(o, &m, r)
		r.of, _ = any(o).(Object)
		return err
	}
}

// ErrnoOf returns the errno value that the client gets for an error.
func ErrnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EINVAL
}

// Bring adds the descriptor of a queue's memory to the reply, if the client has not been given it
// before. The reply owns the descriptor: later requests of the batch, even the removal of the
// queue, must not let its number name another file before the reply is sent.
func (r *Reply) Bring(mem *memfd.Shared) {
	if fd := mem.TakeFD(); fd >= 0 {
		r.FDs, r.Done = []int{fd}, func() { _ = unix.Close(fd) } // the client has its copy
	}
}
