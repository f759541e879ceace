package udp

import (
	"time"

	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

const (
	rxBuffers  = 32
	rxMessages = 16      // taken at once
	rxSize     = 1 << 16 // of a buffer: the longest that the kernel joins
	// Messages as long as this fill the caches by themselves, so fewer are taken
	// at once.
	longMessage  = 8 << 10
	longMessages = 2
)

// receiver has the messages that the last call took: msg[at:have] wait to be cut
// into datagrams.
type receiver struct {
	buffers [rxBuffers]rxBuffer
	free    []int32 // buffers that nobody holds
	msg     [rxMessages]rxMessage
	hdr     [rxMessages]mmsghdr
	at      int
	have    int
	want    int // messages to ask for
}

// source is a socket that datagrams come from: the port's, or a group's.
type source struct {
	fd      int
	group   uint16 // its number; 0: the port's own
	dropped uint32
}

// rxBuffer is free when nobody holds it: the message that lies in it, or a
// datagram of it that was lent.
type rxBuffer struct {
	data []byte
	held int32
}

// rxMessage is a message as it is cut.
type rxMessage struct {
	buffer  int32
	armed   bool // it has a buffer and was not received
	off     int
	length  int
	segment int // bytes of each datagram but the last
	group   uint16
	class   uint8
	peer    port.Peer
	name    [sockaddrLen]byte
	iov     unix.Iovec
	control controlBuffer
}

func (r *receiver) init(q *queue) {
	size := rxSize
	if !q.gro.Load() && q.v4 { // of IPv6 they may be as long as the sender's link has them fragmented
		size = q.room + 1 // longer ones are recognised as such
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
		q.send(true) // the socket had no room
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

// receive takes messages from the socket, or from that of a group; false if there are none.
func (q *queue) receive() bool {
	if g := q.groups.next(); g != nil { // which of them is first alternates
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

// arm gives buffers to the messages to ask for next, as far as there are, and
// returns their number. Those that the last call left untouched have theirs.
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

// arrived reads what the kernel says of a message.
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
		q.tellOutsider(&m.peer)
	}
	if m.length >= longMessage {
		r.want = longMessages
	}
}

// allowed looks a sender up in the list of networks.
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

// tellOutsider logs a sender whose datagram was dropped, one in a minute.
func (q *queue) tellOutsider(p *port.Peer) {
	if now := time.Now(); now.Sub(q.told) >= time.Minute {
		q.told = now
		q.log("dropped: \"allow\" in urdma.json has no network of the sender's; others are only counted (rx_errors) for a minute", "sender", p.Addr().String())
	}
}

// cut lends the next datagram; false if the message has none.
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

// release gives up a hold on a buffer.
func (r *receiver) release(buffer int32) {
	b := &r.buffers[buffer]
	if b.held--; b.held == 0 {
		r.free = append(r.free, buffer)
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
