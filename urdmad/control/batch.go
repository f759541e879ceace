package control

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// batch carries out the requests of a BATCH until one is refused.
func (x *Session) batch(b []byte, r *Reply) (err error) {
	r.Done = func() {}
	defer func() { x.made = nil }()
	r.Body, err = runBatch(b, func(t abi.Type, request []byte, made []uint32) ([]byte, int, syscall.Errno) {
		var one Reply
		x.made = made
		err := x.dispatch(t, request, &one)
		if before, last := r.Done, one.Done; last != nil {
			r.Done = func() { before(); last() }
		}
		if err != nil {
			x.sayRefused(t, err)
			return nil, 0, ErrnoOf(err)
		}
		r.FDs = append(r.FDs, one.FDs...)
		return one.Body, len(one.FDs), 0
	})
	return err
}

// runBatch has do carry out the requests of b, in order, until it refuses one, and returns
// the answer to b. do is told what those before have made, and returns the answer to a request, with room for the header in front,
// or nil where that is all, and how many descriptors come with it; or the errno value of
// its refusal, 0 for none. An error is that of a batch which is none: nothing was done.
func runBatch(b []byte, do func(t abi.Type, request []byte, made []uint32) (answer []byte, fds int, refused syscall.Errno)) ([]byte, error) {
	requests, err := splitBatch(b)
	if err != nil {
		return nil, err
	}
	var resp abi.BatchResponse
	var made []uint32
	out := append(make([]byte, 0, abi.MaxMessage), abi.Bytes(&resp)...)
	for i, request := range requests {
		h := headerOf(request)
		if h.Type.Way() != abi.Batched {
			resp.Refused = int32(syscall.EOPNOTSUPP)
			break
		}
		answer, fds, refused := do(h.Type, request, made)
		if refused != 0 {
			resp.Refused = int32(refused)
			break
		}
		answer = headed(h, answer)
		resp.Done++
		resp.FDs[i] = uint8(fds)
		made = append(made, madeBy(answer))
		out = append(out, answer...)
	}
	copy(out, abi.Bytes(&resp))
	return out, nil
}

// headed is an answer with its header.
func headed(h abi.Header, answer []byte) []byte {
	if answer == nil {
		answer = make([]byte, abi.Size[abi.Header]())
	}
	h.Length, h.Status = uint32(len(answer)), 0
	copy(answer, abi.Bytes(&h))
	return answer
}

// splitBatch takes a batch apart.
func splitBatch(b []byte) (requests [][]byte, err error) {
	least := abi.Size[abi.BatchRequest]()
	if len(b) < least {
		return nil, fmt.Errorf("control: a batch has %d bytes, expected %d or more: %w", len(b), least, syscall.EINVAL)
	}
	m, _ := abi.Decode[abi.BatchRequest](b[:least])
	if m.Count > abi.MaxBatch {
		return nil, fmt.Errorf("control: a batch of %d requests, expected %d at most: %w", m.Count, abi.MaxBatch, syscall.EINVAL)
	}
	b = b[least:]
	for i := range m.Count {
		if len(b) < abi.Size[abi.Header]() {
			return nil, fmt.Errorf("control: request %d of a batch is cut off: %w", i, syscall.EINVAL)
		}
		n := headerOf(b).Length
		if n < uint32(abi.Size[abi.Header]()) || uint64(n) > uint64(len(b)) {
			return nil, fmt.Errorf("control: request %d of a batch says it has %d bytes, of %d: %w", i, n, len(b), syscall.EINVAL)
		}
		requests, b = append(requests, b[:n]), b[n:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("control: %d bytes behind a batch: %w", len(b), syscall.EINVAL)
	}
	return requests, nil
}

// headerOf is a message's header; it has one.
func headerOf(b []byte) abi.Header {
	h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	return h
}

// madeBy is the handle that an answer begins with, as all do that tell of an object
// made; what others begin with names nothing that a client could not name itself.
func madeBy(answer []byte) uint32 {
	if len(answer) < abi.Size[abi.HandleMessage]() {
		return abi.NoHandle
	}
	m, _ := abi.Decode[abi.HandleMessage](answer[:abi.Size[abi.HandleMessage]()])
	return m.Handle
}
