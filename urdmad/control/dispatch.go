package control

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"time"

	"urdma/verbs/abi"
)

// handler answers one type of message; only b's length has been checked, against the header.
type handler func(x *Session, b []byte, r *Reply) error

// by turns a method into a handler. The method's receiver is the object whose handle follows the
// header, or the session.
func by[O, M any](method func(O, *M, *Reply) error) handler {
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
		err = method(o, &m, r)
		r.of, _ = any(o).(Object)
		return err
	}
}

func (x *Session) dispatch(t abi.Type, b []byte, r *Reply) error {
	h := handlers[t]
	if h == nil {
		h = x.s.requests[t]
	}
	if h == nil && t != abi.Batch {
		return fmt.Errorf("control: message type %d is unknown: %w", uint32(t), syscall.EOPNOTSUPP)
	}
	if x.ready && t.Way() != abi.Looks {
		if err := x.s.before(x, t); err != nil {
			x.s.answered(x, Answered{Type: t, Begun: time.Now(), Err: err})
			return err
		}
	}
	if t == abi.Batch { // not of one length
		return x.batch(b, r)
	}
	if t.Way() == abi.Looks {
		return h(x, b, r)
	}
	begun := time.Now()
	err := h(x, b, r)
	x.s.answered(x, Answered{t, r.of, begun, err})
	return err
}
