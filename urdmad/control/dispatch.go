package control

import (
	"fmt"
	"syscall"
	"time"

	"urdma/verbs/abi"
)

// handlers answer what a client asks before it has objects. Objects and features attach the others.
var handlers = map[abi.Type]Request{
	abi.Hello:       Answer((*Session).hello),
	abi.QueryDevice: Answer((*Session).queryDevice),
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

// batch carries out the requests of a BATCH, up to the first that is refused.
func (x *Session) batch(b []byte, r *Reply) (err error) {
	r.Done = func() {}
	defer x.setMade(nil)
	r.Body, err = runBatch(x.batched[:0], b, func(t abi.Type, request []byte, made []uint32) ([]byte, int, syscall.Errno) {
		x.part = Reply{}
		x.setMade(made)
		one := &x.part
		err := x.dispatch(t, request, one)
		if before, last := r.Done, one.Done; last != nil {
			r.Done = func() { before(); last() }
		}
		if err != nil {
			x.logRefused(t, err)
			return nil, 0, ErrnoOf(err)
		}
		r.FDs = append(r.FDs, one.FDs...)
		return one.Body, len(one.FDs), 0
	})
	x.batched = r.Body
	return err
}

// setMade sets the handles made by the current batch: the worker's thread may look them up
// meanwhile.
func (x *Session) setMade(made []uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made = made
}
