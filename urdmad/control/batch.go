package control

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// runBatch calls do for the requests of b, in order, until one is refused, and returns the
// response to the batch, appended to out, which is empty. made has the handles that earlier requests
// returned. do returns the answer, with room for its header, or nil for a bare header; the number of
// descriptors that come with it; and the errno value of a refusal, or 0. runBatch returns an error if the
// batch is malformed; no request of it was carried out.
func runBatch(out, b []byte, do func(t abi.Type, request []byte, made []uint32) (answer []byte, fds int,
	refused syscall.Errno)) ([]byte, error) {
	requests, err := splitBatch(b)
	if err != nil {
		return nil, err
	}
	var resp abi.BatchResponse
	made := make([]uint32, 0, len(requests))
	out = append(out, abi.Bytes(&resp)...)
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

// headed returns an answer with its header filled in.
func headed(h abi.Header, answer []byte) []byte {
	if answer == nil {
		answer = make([]byte, abi.Size[abi.Header]())
	}
	h.Length, h.Status = uint32(len(answer)), 0
	copy(answer, abi.Bytes(&h))
	return answer
}

// splitBatch splits a batch into its requests.
func splitBatch(b []byte) (requests [][]byte, err error) {
	least := abi.Size[abi.BatchRequest]()
	if len(b) < least {
		return nil, fmt.Errorf("control: a batch has %d bytes, expected %d or more: %w", len(b), least, syscall.EINVAL)
	}
	m, _ := abi.Decode[abi.BatchRequest](b[:least])
	if m.Count > abi.MaxBatch {
		return nil, fmt.Errorf("control: a batch of %d requests, expected %d at most: %w", m.Count, abi.MaxBatch,
			syscall.EINVAL)
	}
	b = b[least:]
	requests = make([][]byte, 0, m.Count)
	for i := range m.Count {
		if len(b) < abi.Size[abi.Header]() {
			return nil, fmt.Errorf("control: request %d of a batch is cut off: %w", i, syscall.EINVAL)
		}
		n := headerOf(b).Length
		if n < uint32(abi.Size[abi.Header]()) || uint64(n) > uint64(len(b)) {
			return nil, fmt.Errorf("control: request %d of a batch says it has %d bytes, of %d: %w", i, n, len(b),
				syscall.EINVAL)
		}
		requests, b = append(requests, b[:n]), b[n:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("control: %d bytes behind a batch: %w", len(b), syscall.EINVAL)
	}
	return requests, nil
}

// headerOf returns the header of a message, which must have one.
func headerOf(b []byte) abi.Header {
	h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	return h
}

// madeBy returns the first word of an answer. It is the handle of the new object if the request
// made one; otherwise it names nothing that the client could not name itself.
func madeBy(answer []byte) uint32 {
	if len(answer) < abi.Size[abi.HandleMessage]() {
		return abi.NoHandle
	}
	m, _ := abi.Decode[abi.HandleMessage](answer[:abi.Size[abi.HandleMessage]()])
	return m.Handle
}
