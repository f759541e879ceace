package control

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"urdma/verbs/abi"
)

// batchOf is a BATCH of requests.
func batchOf(requests ...[]byte) []byte {
	all := bytes.Join(requests, nil)
	q := abi.BatchRequest{Count: uint32(len(requests))}
	q.Header = abi.Header{Type: abi.Batch, Length: uint32(abi.Size[abi.BatchRequest]() + len(all))}
	return append(bytes.Clone(abi.Bytes(&q)), all...)
}

// requestOf is a request with its header.
func requestOf[T any](t abi.Type, m T) []byte {
	b := bytes.Clone(abi.Bytes(&m))
	copy(b, abi.Bytes(&abi.Header{Type: t, Length: uint32(len(b))}))
	return b
}

// FuzzBatch takes batches of any bytes apart. What is carried out are the requests, in
// order and no more than are counted; the answer is as long as its parts.
func FuzzBatch(f *testing.F) {
	channel := requestOf(abi.CreateChannel, abi.HandleMessage{Handle: 1})
	queue := requestOf(abi.CreateCQ, abi.CreateCQRequest{Context: 1, CQE: 10, Channel: abi.BatchMade})
	pair := requestOf(abi.CreateQP, abi.CreateQPRequest{SendCQ: abi.BatchMade + 1, RecvCQ: abi.BatchMade + 15})
	modify := requestOf(abi.ModifyQP, abi.ModifyQPRequest{Handle: abi.BatchMade + 2})
	f.Add(batchOf(channel, queue, pair, modify), uint8(9))
	f.Add(batchOf(), uint8(0))
	f.Add(batchOf(queue, batchOf(queue)), uint8(9))
	f.Add(batchOf(queue, queue[:len(queue)-1]), uint8(9))
	f.Add(batchOf(queue[:8], queue[8:]), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, refuse uint8) {
		if len(b) > abi.MaxMessage {
			return
		}
		var done int
		var parts []byte
		out, err := runBatch(nil, b, func(kind abi.Type, request []byte, made []uint32) ([]byte, int, syscall.Errno) {
			if kind.Way() != abi.Batched || len(made) != done || int(headerOf(request).Length) != len(request) {
				t.Fatalf("carried out: type %d, %d bytes", kind, len(request))
			}
			if done == int(refuse) {
				return nil, 0, syscall.EPERM
			}
			done++
			answer := abi.HandleMessage{Handle: uint32(done)}
			parts = append(parts, make([]byte, abi.Size[abi.HandleMessage]())...)
			return abi.Bytes(&answer), done, 0
		})
		if err != nil {
			if done > 0 || !errors.Is(err, syscall.EINVAL) {
				t.Fatalf("%v, and %d were carried out", err, done)
			}
			return
		}
		size := abi.Size[abi.BatchResponse]()
		resp, ok := abi.Decode[abi.BatchResponse](out[:size])
		if !ok || int(resp.Done) != done || len(out) != size+len(parts) || done > abi.MaxBatch {
			t.Fatalf("%+v, %d bytes, %d were carried out", resp, len(out), done)
		}
	})
}
