package udp

import "urdma/dpdk/port"

const (
	txMessages = 64 // of a system call
	// maxSegments is what every kernel since 4.18 cuts out of one send, and what
	// receivers join.
	maxSegments = 64
	maxSend     = 65507 // of one send
)

// txMessage is what a message needs besides its header.
type txMessage struct {
	packets int
	name    [sockaddrLen]byte
	control controlBuffer
}

// compose makes messages of the packets that wait, as far as they are to be sent
// alike, and returns their number.
func (q *queue) compose() (n int) {
	t := &q.tx
	at, iovs := t.head, 0
	for n < txMessages && at < len(t.queue) && iovs < len(t.iov) && t.queue[at].how == t.how {
		count := 1
		if t.single <= at-t.head && t.how == 0 && q.gso.Load() && !t.queue[at].alone {
			count = t.group(t.queue[at:min(len(t.queue), at+len(t.iov)-iovs)])
		}
		q.message(n, t.queue[at:at+count], iovs)
		at, iovs = at+count, iovs+count
		n++
	}
	return n
}

// group is how many of the packets can leave as one: to one peer, of one length
// but for a shorter last one.
func (t *transmitter) group(o []outgoing) int {
	total, size := o[0].length, o[0].length
	for n := 1; n < min(len(o), maxSegments); n++ {
		next := &o[n]
		if next.length > size || total+next.length > maxSend || next.how != 0 || next.alone || next.peer != o[0].peer {
			return n
		}
		total += next.length
		if next.length < size {
			return n + 1
		}
	}
	return min(len(o), maxSegments)
}

// message fills in message n: these packets, from iov on.
func (q *queue) message(n int, o []outgoing, iov int) {
	t := &q.tx
	m, h := &t.msg[n], &t.hdr[n]
	m.packets = len(o)
	for i := range o {
		v := &t.iov[iov+i]
		v.Base = &t.slots[o[i].slot][0]
		v.SetLen(int(o[i].length))
	}
	h.Name = &m.name[0]
	h.Namelen = putSockaddr(&m.name, q.v4, q.scope, &o[0].peer)
	h.Iov = &t.iov[iov]
	h.SetIovlen(len(o))
	h.Control = nil
	h.SetControllen(0)
	if len(o) > 1 {
		h.Control = &m.control[0]
		h.SetControllen(m.control.putSegment(int(o[0].length)))
	}
}

var _ port.Queue = (*queue)(nil)
