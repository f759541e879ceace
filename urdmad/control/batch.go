package control

import (
	"syscall"

	"urdma/urdmad/control/batch"
	"urdma/urdmad/control/message"
	"urdma/verbs/abi"
)

// batch carries out the requests of a BATCH until one is refused.
func (x *Session) batch(b []byte, r *reply) (err error) {
	r.done = func() {}
	r.body, err = batch.Run(b, func(t abi.Type, request []byte) ([]byte, int, syscall.Errno) {
		var one reply
		err := x.dispatch(t, request, &one)
		if before, last := r.done, one.done; last != nil {
			r.done = func() { before(); last() }
		}
		if err != nil {
			x.sayRefused(t, err)
			return nil, 0, message.Errno(err)
		}
		r.fds = append(r.fds, one.fds...)
		return one.body, len(one.fds), 0
	})
	return err
}
