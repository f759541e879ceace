// Package abi is Go's side of urdma_abi.h, the interface between urdmad and its clients: control messages,
// event messages and the layout of shared rings.
//
// The header is the only source and documents every field. abi_gen.go and the table of handlers in
// urdmad/control are generated from it. A new request needs a row and perhaps a structure in the header, a
// method of its object in urdmad/control, and a caller; go generate ./verbs/abi does the rest.
//
// verbs.go has rdma-core's numbers. The package knows layouts only; behaviour is in verbs/ring and urdmad.
package abi

//go:generate go run ./generate

import "fmt"

// Type is the kind of a control message.
type Type uint32

// request has the columns of URDMA_ABI_REQUESTS that Go needs.
type request struct {
	name string
	size int
	undo Type
	way  int
	call string
	text string
}

func (t Type) row() request {
	if int64(t) < int64(len(requests)) && requests[t].name != "" {
		return requests[t]
	}
	return request{name: fmt.Sprintf("message %d", uint32(t)), way: Alone, call: fmt.Sprintf("message %d", uint32(t)),
		text: fmt.Sprintf("request %d", uint32(t))}
}

// String returns the message's name in urdma_abi.h, without its prefix.
func (t Type) String() string { return t.row().name }

// Call returns the function of libibverbs or librdmacm that makes the request.
func (t Type) Call() string { return t.row().call }

// Text describes the purpose of a request, such as "creating a queue pair".
func (t Type) Text() string { return t.row().text }

// Size returns the length of a request in bytes; a BATCH is longer.
func (t Type) Size() int { return t.row().size }

// Undo returns the request that destroys the object which this one creates, or None.
func (t Type) Undo() Type { return t.row().undo }

// Way returns how a request may be sent: Batched, Alone, Moves or Looks.
func (t Type) Way() int { return t.row().way }

// Private returns the private data, PrivateDataLen bytes.
func (p *CMParam) Private() []byte {
	return p.PrivateData[:min(int(p.PrivateDataLen), MaxPrivate)]
}

// SetPrivate stores private data, truncated to MaxPrivate bytes.
func (p *CMParam) SetPrivate(b []byte) {
	p.PrivateDataLen = uint16(copy(p.PrivateData[:], b))
}

// AdminRefused begins the text of a response to ADMIN that says why the request was not carried out.
const AdminRefused = "refused: "
