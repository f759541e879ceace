// Package abi is Go's side of urdma_abi.h, the contract between urdmad and its
// clients: control messages, event messages and the layout of shared rings.
//
// The header is the only source and documents every field; abi_gen.go is generated
// from it, and so is the table of handlers in urdmad/control. A new request takes a
// row and perhaps a structure in the header, a method of the object that it is for in
// urdmad/control, and its caller; go generate ./verbs/abi does the rest.
//
// verbs.go has the numbers of rdma-core. The package knows layouts only; behaviour
// lives in verbs/ring and urdmad.
package abi

//go:generate go run ./generate

import "fmt"

// Type is the kind of a control message.
type Type uint32

// request is what Go needs of a row of URDMA_ABI_REQUESTS.
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
	return request{name: fmt.Sprintf("message %d", uint32(t)), way: Alone, call: fmt.Sprintf("message %d", uint32(t)), text: fmt.Sprintf("request %d", uint32(t))}
}

// String is the name that urdma_abi.h has for the message, without its prefix.
func (t Type) String() string { return t.row().name }

// Call is the function of libibverbs or librdmacm that makes the request.
func (t Type) Call() string { return t.row().call }

// Text says what a request is for, in words.
func (t Type) Text() string { return t.row().text }

// Size is how many bytes a request has; BATCH has more.
func (t Type) Size() int { return t.row().size }

// Undo is the request that destroys what this one makes, or None.
func (t Type) Undo() Type { return t.row().undo }

// Way is how a request may be sent: Batched, Alone, Moves or Looks.
func (t Type) Way() int { return t.row().way }

// Private returns the private data that PrivateDataLen covers.
func (p *CMParam) Private() []byte {
	return p.PrivateData[:min(int(p.PrivateDataLen), MaxPrivate)]
}

// SetPrivate stores private data, cut at MaxPrivate bytes.
func (p *CMParam) SetPrivate(b []byte) {
	p.PrivateDataLen = uint16(copy(p.PrivateData[:], b))
}

// AdminRefused begins the text of an answer to ADMIN that says why nothing was done.
const AdminRefused = "refused: "
