package udp

import (
	"time"

	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

const (
	rxBuffers  = 32
	rxMessages = 16      // messages received in one call
	rxSize     = 1 << 16 // bytes of a buffer: the longest message that the kernel joins
	// Messages this long fill the caches, so fewer are received at once.
	longMessage  = 8 << 10
	longMessages = 2
)

// receiver has the messages of the last call: msg[at:have] are to be split into datagrams.
type receiver struct {
	buffers [rxBuffers]rxBuffer
	free    []int32 // free buffers
	msg     [rxMessages]rxMessage
	hdr     [rxMessages]mmsghdr
	at      int
	have    int
	want    int // number of messages to request
}

// source is a socket from which datagrams are received: the port's or a group's.
type source struct {
	fd      int
	group   uint16 // the group's number; 0: the port's own socket
	dropped uint32
}

// rxBuffer is a receive buffer. It is free when nobody holds it: neither the message in it, nor a caller with
// a datagram of it.
type rxBuffer struct {
	data []byte
	held int32
}

// rxMessage is a message that is being split.
type rxMessage struct {
	buffer  int32
	armed   bool // has a buffer, and nothing was received into it
	off     int
	length  int
	segment int // bytes of each datagram except the last
	group   uint16
	class   uint8
	peer    port.Peer
	name    [sockaddrLen]byte
	iov     unix.Iovec
	control controlBuffer
}

func (r *receiver) init(q *queue) {
	size := rxSize
	if !q.gro.Load() && q.v4 { // over IPv6 they may be as long as the sender's FragmentFrom
		size = q.room + 1 // one byte more, so that longer ones are recognised
	}
	for i := range r.buffers {
		r.buffers[i].data = make([]byte, size)
		r.free = append(r.free, int32(i))
	}
	r.want = rxMessages
}

// Rx implements port.Queue.
func (q *queue) Rx(p []port.Packet) (n int) {
	r := &q.rx
	if q.tx.waiting() > 0 {
		q.send(true) // an earlier send found no room in the socket
	}
	if r.at == r.have && !q.receive() {
		return 0
	}
	bytes := 0
	for n < len(p) && r.at < r.have {
		if r.cut(&p[n]) {
			bytes += len(p[n].Data)
			n++
		}
	}
	q.counters.RxPackets.Add(uint64(n))
	q.counters.RxBytes.Add(uint64(bytes))
	return n
}

// receive receives messages from the port's or a group's socket; false if there are none.
func (q *queue) receive() bool {
	if g := q.groups.next(); g != nil { // the first one alternates
		return q.receiveFrom(g) || q.receiveFrom(&q.own)
	}
	return q.receiveFrom(&q.own)
}

func (q *queue) receiveFrom(s *source) bool {
	r := &q.rx
	n, errno := recvmmsg(s.fd, r.hdr[:r.arm()])
	if errno != 0 || n <= 0 {
		return false
	}
	r.at, r.have, r.want = 0, n, rxMessages
	for i := range n {
		q.arrived(i, s)
	}
	return true
}

// arm assigns buffers to the messages to request next, as long as there are any, and returns their number.
// Messages that the last call did not use still have theirs.
func (r *receiver) arm() int {
	for i := range r.want {
		m, h := &r.msg[i], &r.hdr[i]
		if m.armed {
			continue
		}
		if len(r.free) == 0 {
			return i
		}
		m.buffer = r.free[len(r.free)-1]
		r.free = r.free[:len(r.free)-1]
		b := &r.buffers[m.buffer]
		b.held, m.armed = 1, true
		m.iov.Base = &b.data[0]
		m.iov.SetLen(len(b.data))
		h.Name, h.Namelen = &m.name[0], sockaddrLen
		h.Iov = &m.iov
		h.SetIovlen(1)
		h.Control = &m.control[0]
		h.SetControllen(len(m.control))
	}
	return r.want
}

// arrived reads the kernel's information about a message.
func (q *queue) arrived(i int, s *source) {
	r := &q.rx
	m, h := &r.msg[i], &r.hdr[i]
	m.armed = false
	m.off, m.length, m.peer, m.group = 0, int(h.length), peerOf(&m.name), s.group
	segment, dropped, class := m.control.parse(int(h.Controllen))
	m.segment, m.class = segment, class
	if m.segment == 0 {
		m.segment = m.length
	}
	if dropped != 0 {
		q.counters.RxDropped.Add(uint64(dropped - s.dropped))
		s.dropped = dropped
	}
	if h.Flags&unix.MSG_TRUNC != 0 || m.length == 0 {
		m.length = 0
		q.counters.RxErrors.Add(1)
	}
	if !q.allowed(&m.peer) {
		m.length = 0
		q.counters.RxErrors.Add(1)
		q.logOutsider(&m.peer)
	}
	if m.length >= longMessage {
		r.want = longMessages
	}
}

// allowed reports whether a sender is in the list of networks.
func (q *queue) allowed(p *port.Peer) bool {
	if len(q.allow) == 0 {
		return true
	}
	a := p.Addr()
	for _, n := range q.allow {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// logOutsider logs a sender whose datagram was dropped, at most once a minute.
func (q *queue) logOutsider(p *port.Peer) {
	if now := time.Now(); now.Sub(q.outsiderLogged) >= time.Minute {
		q.outsiderLogged = now
		q.log("dropped: \"allow\" in urdma.json has no network of the sender's; others are only counted (rx_errors) for a "+
			"minute", "sender", p.Addr().String())
	}
}

// cut returns the next datagram of the message; false if there is none.
func (r *receiver) cut(p *port.Packet) bool {
	m := &r.msg[r.at]
	b := &r.buffers[m.buffer]
	some := m.off < m.length
	if some {
		end := min(m.off+m.segment, m.length)
		p.Data, p.Flags, p.Ref = b.data[m.off:end:end], 0, uintptr(m.buffer) // not one literal: see port.Peer
		p.Peer, p.Group, p.Class = m.peer, m.group, m.class
		m.off = end
		b.held++
	}
	if m.off >= m.length {
		r.at++
		r.release(m.buffer)
	}
	return some
}

// release drops one reference to a buffer.
func (r *receiver) release(buffer int32) {
	b := &r.buffers[buffer]
	if b.held--; b.held == 0 {
		r.free = append(r.free, buffer)
	}
}

// Free implements port.Queue.
func (q *queue) Free(p []port.Packet) {
	for i := range p {
		if ref := p[i].Ref; ref >= firstTransmit {
			q.tx.free = append(q.tx.free, int32(ref-firstTransmit))
		} else {
			q.rx.release(int32(ref))
		}
	}
}

// ArmRx implements port.Queue.
func (q *queue) ArmRx() (fd int, armed bool) {
	if q.rx.at < q.rx.have || q.tx.waiting() > 0 || q.receive() {
		return -1, false
	}
	return q.groups.wait(q.own.fd), true
}

// DisarmRx implements port.Queue.
func (q *queue) DisarmRx() {}
