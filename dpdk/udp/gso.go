package udp

import (
	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

const (
	txMessages  = 64 // messages in one system call
	maxSegments = port.BatchPackets
	maxSend     = port.BatchBytes
)

// txMessage has the parts of a message other than its header.
type txMessage struct {
	packets int
	name    [sockaddrLen]byte
	control controlBuffer
}

// compose groups the waiting packets into messages and returns their number. Unless all must be sent, it
// leaves out a last message to which more packets could be added.
func (q *queue) compose(all bool) (n int) {
	t := &q.tx
	at, iovs := t.head, 0
	for n < txMessages && at < len(t.queue) && iovs < len(t.iov) && t.queue[at].how == t.how {
		count := 1
		if t.single <= at-t.head && t.how != port.TxFragment && q.gso.Load() && !t.queue[at].alone {
			var full bool
			count, full = t.group(t.queue[at:min(len(t.queue), at+len(t.iov)-iovs)])
			if !full && !all && at+count == len(t.queue) {
				break
			}
		}
		iovs += q.message(n, t.queue[at:at+count], iovs)
		at += count
		n++
	}
	return n
}

// group returns how many of the packets can be sent together: to one peer, and of one length except for a
// shorter last one. full is set if no further packet of the same length could be added.
func (t *transmitter) group(o []outgoing) (n int, full bool) {
	total, size := o[0].length, o[0].length
	for n = 1; n < min(len(o), maxSegments); n++ {
		next := &o[n]
		if next.length > size || total+next.length > maxSend || next.how != o[0].how || next.alone ||
			next.class != o[0].class || next.peer != o[0].peer {
			return n, true
		}
		total += next.length
		if next.length < size {
			return n + 1, true
		}
	}
	return n, n == maxSegments || total+size > maxSend
}

// message fills in message n with these packets; its pieces begin at iov, and it returns how many there are.
func (q *queue) message(n int, o []outgoing, iov int) (iovs int) {
	t := &q.tx
	m, h := &t.msg[n], &t.hdr[n]
	m.packets = len(o)
	h.Name = &m.name[0]
	h.Namelen = putSockaddr(&m.name, q.v4, q.scope, &o[0].peer)
	h.Iov = &t.iov[iov]
	iovs = t.gather(o, t.iov[iov:])
	h.SetIovlen(iovs)
	h.Control = nil
	h.SetControllen(0)
	length := 0
	if len(o) > 1 {
		length = m.control.putSegment(int(o[0].length))
	}
	if o[0].class != 0 {
		length = m.control.putClass(length, q.v4, o[0].class)
	}
	if length > 0 {
		h.Control = &m.control[0]
		h.SetControllen(length)
	}
	if q.renumber != nil {
		q.number(o)
	}
	return iovs
}

// number tells the sender of packets with don't-fragment which IPv4 identifications they will get: the kernel
// gives a single such datagram 0, and those that it splits from one send 0, 1, 2, … (ip_select_ident,
// inet_gso_segment).
func (q *queue) number(o []outgoing) {
	for i := range o {
		if p := &o[i]; p.how == port.TxWhole && p.number != uint16(i) {
			q.renumber(q.tx.slots[p.slot][:p.length], p.number, uint16(i))
			p.number = uint16(i)
		}
	}
}

// gather describes packets by as few pieces as possible, because each piece costs the kernel more than
// copying 500 bytes. Packets of the full size in adjacent slots form one piece.
func (t *transmitter) gather(o []outgoing, v []unix.Iovec) (n int) {
	next := int32(-1) // the slot that follows the last piece
	for i := range o {
		length := int(o[i].length)
		if o[i].slot == next {
			v[n-1].Len += uint64(length)
		} else {
			v[n].Base = &t.slots[o[i].slot][0]
			v[n].SetLen(length)
			n++
		}
		if next = -1; length == len(t.slots[o[i].slot]) {
			next = o[i].slot + 1
		}
	}
	return n
}

var _ port.Queue = (*queue)(nil)
