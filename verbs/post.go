package verbs

import (
	"fmt"

	"urdma/verbs/abi"
)

// SendRequest is a send work request: a message, an RDMA Write or a Read.
type SendRequest struct {
	ID uint64 // comes back in the completion
	Op Op
	// Signaled makes success a completion too; failures always are.
	Signaled bool
	// Solicited makes the peer's receive a solicited one.
	Solicited bool
	// Fence has it wait until the Reads before it are done.
	Fence bool
	// Local is the source, or for OpRead where the bytes go.
	Local []Segment
	// Inline is copied into the request and sent in place of Local: the slice
	// may be used again at once. Not for OpRead.
	Inline []byte
	// RemoteAddr and RemoteKey name the peer's memory: MR.Addr and MR.Key there.
	RemoteAddr uint64
	RemoteKey  uint32
	// Invalidate is the key of the peer's that OpSendAndInvalidate ends.
	Invalidate uint32
}

func (r *SendRequest) sqe() abi.SQE {
	w := abi.SQE{WRID: r.ID, Opcode: uint32(r.Op), RKey: r.RemoteKey, RemoteAddr: r.RemoteAddr, ImmOrSTag: r.Invalidate}
	if r.Signaled {
		w.Flags |= abi.SendSignaled
	}
	if r.Solicited {
		w.Flags |= abi.SendSolicited
	}
	if r.Fence {
		w.Flags |= abi.SendFence
	}
	return w
}

// PostSend posts requests, all of them or those before the one that is refused,
// and returns how many. Requests may be posted before the connection is
// established; they go out when it is.
func (q *QP) PostSend(requests ...*SendRequest) (n int, err error) {
	q.send.Lock()
	for n < len(requests) && err == nil {
		if err = q.write(requests[n]); err == nil {
			n++
		}
	}
	if n > 0 {
		q.ring.PublishSQ()
	}
	q.send.Unlock()
	if n > 0 {
		q.c.ring(q.worker, q.bell)
		q.yieldAfterPost()
	}
	return n, err
}

func (q *QP) write(r *SendRequest) error {
	if q.closed {
		return ErrClosed
	}
	if err := q.check(r); err != nil {
		return err
	}
	if q.sends.full() {
		return ErrQueueFull
	}
	w, ok := r.sqe(), false
	if r.Inline != nil {
		ok = q.ring.WriteInline(&w, r.Inline)
	} else {
		ok = q.ring.WriteSQ(&w, r.Local)
	}
	if !ok {
		return ErrQueueFull
	}
	q.sends.add(r.Signaled)
	return nil
}

func (q *QP) check(r *SendRequest) error {
	switch {
	case r.Op != OpSend && r.Op != OpWrite && r.Op != OpRead && r.Op != OpSendAndInvalidate:
		return fmt.Errorf("%w: operation %d", ErrRequest, r.Op)
	case r.Inline != nil && (r.Op == OpRead || len(r.Local) > 0):
		return fmt.Errorf("%w: inline data with a Read or a list", ErrRequest)
	case len(r.Inline) > q.ring.MaxInline():
		return fmt.Errorf("%w: %d bytes of inline data, the queue pair takes %d", ErrRequest, len(r.Inline), q.ring.MaxInline())
	case len(r.Local) > q.ring.MaxSGE():
		return fmt.Errorf("%w: list of %d, the queue pair takes %d", ErrRequest, len(r.Local), q.ring.MaxSGE())
	}
	return nil
}

// PostRecv posts one receive: a message goes to the parts of the list in order.
func (q *QP) PostRecv(id uint64, list ...Segment) error {
	q.recv.Lock()
	defer q.recv.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(list) > q.ring.MaxRecvSGE():
		return fmt.Errorf("%w: list of %d, the queue pair takes %d", ErrRequest, len(list), q.ring.MaxRecvSGE())
	case q.recvs.full() || !q.ring.WriteRQ(id, list):
		return ErrQueueFull
	}
	q.recvs.add(true)
	q.ring.PublishRQ()
	q.c.ring(q.worker, q.bell)
	return nil
}
