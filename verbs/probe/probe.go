// Package probe has the private data that `urdma ping` and a urdmad's responder exchange while they connect,
// in the request, the accept and the reject (docs/WIRE.md chapter 12). RDMA Reads of the responder's memory
// follow. The package knows no connection.
package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Port is the responder's port number, in rdma_cm's port space.
const Port = 30036

// Bytes is the size of the memory that the responder lets peers read.
const Bytes = 64 << 10

// Status is the responder's answer to a request.
type Status uint8

// The answers; all except Granted reject the connection.
const (
	Granted      Status = 0
	Off          Status = 1 // disabled in the responder's configuration
	NotForYou    Status = 2 // responder_allow does not contain the address
	OtherVersion Status = 3
)

const (
	magic       = 0x75527062 // "uRpb"
	version     = 1
	kindPing    = 1
	requestSize = 16
	answerSize  = 24
)

// Errors for private data that is not a probe's.
var (
	ErrForeign = errors.New("probe: not a responder's data")
	ErrVersion = errors.New("probe: another version")
)

// Request is the private data of a connection request.
type Request struct {
	Seed uint64 // determines the contents of the memory, see Fill
}

// Append appends the request's bytes, big-endian.
func (r Request) Append(b []byte) []byte {
	b = header(b, kindPing)
	return binary.BigEndian.AppendUint64(b, r.Seed)
}

// ParseRequest reads a request. It ignores bytes after it.
func ParseRequest(b []byte) (Request, error) {
	if err := check(b, requestSize); err != nil {
		return Request{}, err
	}
	if b[5] != kindPing {
		return Request{}, fmt.Errorf("%w: kind %d", ErrVersion, b[5])
	}
	return Request{binary.BigEndian.Uint64(b[8:])}, nil
}

// Answer is the private data of an accept or, with a Status other than Granted, of a reject.
type Answer struct {
	Status Status
	Bytes  uint32 // size of the memory that may be read
	RKey   uint32
	Addr   uint64
}

// Append appends the answer's bytes, big-endian.
func (a Answer) Append(b []byte) []byte {
	b = header(b, byte(a.Status))
	b = binary.BigEndian.AppendUint32(b, a.Bytes)
	b = binary.BigEndian.AppendUint32(b, a.RKey)
	return binary.BigEndian.AppendUint64(b, a.Addr)
}

// ParseAnswer reads an answer. It ignores bytes after it.
func ParseAnswer(b []byte) (Answer, error) {
	if err := check(b, answerSize); err != nil {
		return Answer{}, err
	}
	return Answer{Status(b[5]), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]),
		binary.BigEndian.Uint64(b[16:])}, nil
}

func header(b []byte, what byte) []byte {
	b = binary.BigEndian.AppendUint32(b, magic)
	return append(b, version, what, 0, 0)
}

func check(b []byte, size int) error {
	if len(b) < 6 || binary.BigEndian.Uint32(b) != magic {
		return ErrForeign
	}
	if b[4] != version {
		return fmt.Errorf("%w: %d, expected %d", ErrVersion, b[4], version)
	}
	if len(b) < size {
		return fmt.Errorf("%w: %d bytes, expected %d", ErrForeign, len(b), size)
	}
	return nil
}

// Fill writes the contents of the memory that peers read: the seed, big-endian, again and again, with the
// number of the repetition added to each byte. So a reader can tell for which request the bytes were written
// and to which position they belong.
func Fill(b []byte, seed uint64) {
	var s [8]byte
	binary.BigEndian.PutUint64(s[:], seed)
	for i := range b {
		b[i] = s[i%8] + byte(i/8)
	}
}
