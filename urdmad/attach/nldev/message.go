package nldev

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// client is the number of the kernel's RDMA_NL_NLDEV: bits 10 and up of a message's type; the command is below.
const client = 5

// request is a netlink message (RFC 3549 section 2.3.2).
type request struct {
	header  [unix.SizeofNlMsghdr]byte
	command uint16
	flags   uint16
	has     map[uint16][]byte // attributes
}

func (r *request) dump() bool { return r.flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP }

// number returns an attribute of 32 bits, 0 if it is missing.
func (r *request) number(kind uint16) uint32 {
	if b := r.has[kind]; len(b) == 4 {
		return native.Uint32(b)
	}
	return 0
}

// parse reads a request. If it is malformed, the header is set nevertheless as far as there is one.
func parse(b []byte) (r request, err error) {
	copy(r.header[:], b)
	kind, length := native.Uint16(r.header[4:]), native.Uint32(r.header[:])
	r.flags = native.Uint16(r.header[6:])
	r.command = kind & (1<<10 - 1)
	if uint64(length) > uint64(len(b)) || length < unix.SizeofNlMsghdr {
		return r, fmt.Errorf("nldev: length %d in a message of %d bytes: %w", length, len(b), unix.EINVAL)
	}
	if kind>>10 != client {
		return r, fmt.Errorf("nldev: message for client %d of NETLINK_RDMA, expected %d: %w", kind>>10, client,
			unix.EOPNOTSUPP)
	}
	r.has, err = parseAttributes(b[unix.SizeofNlMsghdr:length])
	return r, err
}

func parseAttributes(b []byte) (map[uint16][]byte, error) {
	has := map[uint16][]byte{}
	for len(b) >= unix.SizeofNlAttr {
		n := int(native.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return nil, fmt.Errorf("nldev: attribute of %d bytes, %d are left: %w", n, len(b), unix.EINVAL)
		}
		has[native.Uint16(b[2:])&^unix.NLA_F_NESTED] = b[unix.SizeofNlAttr:n]
		b = b[min(len(b), align(n)):]
	}
	return has, nil
}

func align(n int) int { return (n + unix.NLA_ALIGNTO - 1) &^ (unix.NLA_ALIGNTO - 1) }

// message returns an answer with the request's sequence number.
func (r *request) message(kind, flags uint16, body []byte) []byte {
	m := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	native.PutUint32(m, uint32(cap(m)))
	native.PutUint16(m[4:], kind)
	native.PutUint16(m[6:], flags)
	copy(m[8:], r.header[8:]) // sequence number, port ID
	return append(m, body...)
}

// failed returns the answer that says that the request failed; nil acknowledges it.
func (r *request) failed(err error) []byte {
	var number unix.Errno
	if err != nil && !errors.As(err, &number) {
		number = unix.EIO
	}
	return r.message(unix.NLMSG_ERROR, 0, append(native.AppendUint32(nil, -uint32(number)), r.header[:]...))
}

// answered returns the answers of a request.
func (r *request) answered(list []attributes, err error) (messages [][]byte) {
	kind := uint16(client<<10) | r.command
	switch {
	case err != nil:
		return [][]byte{r.failed(err)}
	case r.dump():
		for _, a := range list {
			messages = append(messages, r.message(kind, unix.NLM_F_MULTI, a))
		}
		return append(messages, r.message(unix.NLMSG_DONE, unix.NLM_F_MULTI, make([]byte, 4)))
	case len(list) == 0:
		return [][]byte{r.failed(unix.ENOENT)}
	}
	messages = append(messages, r.message(kind, 0, list[0]))
	if r.flags&unix.NLM_F_ACK != 0 {
		messages = append(messages, r.failed(nil))
	}
	return messages
}

// attributes are encoded netlink attributes. The methods append one.
type attributes []byte

func (a attributes) bytes(kind uint16, value []byte) attributes {
	a = native.AppendUint16(a, uint16(unix.SizeofNlAttr+len(value)))
	a = append(native.AppendUint16(a, kind), value...)
	return append(a, make([]byte, align(len(a))-len(a))...)
}

func (a attributes) u8(kind uint16, v uint8) attributes { return a.bytes(kind, []byte{v}) }
func (a attributes) u32(kind uint16, v uint32) attributes {
	return a.bytes(kind, native.AppendUint32(nil, v))
}
func (a attributes) u64(kind uint16, v uint64) attributes {
	return a.bytes(kind, native.AppendUint64(nil, v))
}
func (a attributes) text(kind uint16, v string) attributes {
	return a.bytes(kind, append([]byte(v), 0))
}
func (a attributes) nested(kind uint16, v attributes) attributes {
	return a.bytes(kind|unix.NLA_F_NESTED, v)
}
