// Package batch takes a BATCH apart (verbs/abi/urdma_abi.h) and puts its answer together.
// It does not know what becomes of a request.
package batch

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// alone are the requests that no batch has: those that look inside, are answered
// at length, move a queue, or come with a descriptor.
var alone = map[abi.Type]bool{abi.Hello: true, abi.QueryDevice: true, abi.ResizeCQ: true, abi.ModifySRQ: true, abi.Inspect: true, abi.Capture: true, abi.CaptureStop: true,
	abi.Batch: true, abi.AddFile: true, abi.OpenXRCD: true}

// Run has do carry out the requests of b, in order, until it refuses one, and returns
// the answer to b. do returns the answer to a request, with room for the header in front,
// or nil where that is all, and how many descriptors come with it; or the errno value of
// its refusal, 0 for none. An error is that of a batch which is none: nothing was done.
func Run(b []byte, do func(t abi.Type, request []byte) (answer []byte, fds int, refused syscall.Errno)) ([]byte, error) {
	requests, err := split(b)
	if err != nil {
		return nil, err
	}
	var resp abi.BatchResponse
	var made []uint32
	out := append(make([]byte, 0, abi.MaxMessage), abi.Bytes(&resp)...)
	for i, request := range requests {
		h := headerOf(request)
		if alone[h.Type] {
			resp.Refused = int32(syscall.EOPNOTSUPP)
			break
		}
		nameMade(h.Type, request, made)
		answer, fds, refused := do(h.Type, request)
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

// split takes a batch apart.
func split(b []byte) (requests [][]byte, err error) {
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

// nameMade writes into a request the handles of what requests before it have made.
func nameMade(t abi.Type, request []byte, made []uint32) {
	switch t {
	case abi.CreateCQ:
		rewrite(request, func(m *abi.CreateCQRequest) { resolve(made, &m.Channel) })
	case abi.CreateQP:
		rewrite(request, func(m *abi.CreateQPRequest) { resolve(made, &m.SendCQ, &m.RecvCQ) })
	case abi.ModifyQP:
		rewrite(request, func(m *abi.ModifyQPRequest) { resolve(made, &m.Handle) })
	}
}

// rewrite changes a message in place, if it has the right length.
func rewrite[T any](request []byte, change func(*T)) {
	if m, ok := abi.Decode[T](request); ok {
		change(&m)
		copy(request, abi.Bytes(&m))
	}
}

func resolve(made []uint32, handles ...*uint32) {
	for _, h := range handles {
		if i := int64(*h) - abi.BatchMade; i >= 0 && i < int64(len(made)) {
			*h = made[i]
		}
	}
}
