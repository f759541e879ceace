package udp

import (
	"urdma/dpdk/port"

	"golang.org/x/sys/unix"
)

const (
	txSlots = 512
	// When txBurst packets, or as many bytes as fit one send, are waiting, they are sent before the turn
	// ends: their data is still in the nearest cache.
	txBurst = 128
	// firstTransmit is the Ref of the first transmit slot.
	firstTransmit = 1 << 24
)

// transmitter collects packets: queue[head:] wait for the socket, in order.
type transmitter struct {
	slots [][]byte
	free  []int32
	queue []outgoing
	head  int
	bytes int // bytes in queue since the last send
	// single is the number of packets at the front that must be sent one by one, because the kernel refused
	// to split them.
	single int
	how    port.Flags // the socket's present treatment of fragmentation
	hdr    [txMessages]mmsghdr
	msg    [txMessages]txMessage
	iov    [txSlots]unix.Iovec
}

// outgoing is a packet that waits to be sent.
type outgoing struct {
	slot, length int32
	peer         port.Peer
	how          port.Flags // TxWhole, TxFragment
	class        uint8      // 0: the socket's own
	number       uint16     // the IPv4 identification that was passed to Options.Renumber
	alone        bool
}

func (t *transmitter) init(q *queue) {
	t.queue = make([]outgoing, 0, 2*txSlots)
	t.slots = make([][]byte, txSlots)
	for i := range t.slots {
		t.free = append(t.free, int32(txSlots-1-i))
	}
	memory := make([]byte, txSlots*q.txRoom)
	for i := range t.slots {
		t.slots[i] = memory[i*q.txRoom : (i+1)*q.txRoom : (i+1)*q.txRoom]
	}
}

func (t *transmitter) waiting() int { return len(t.queue) - t.head }

// Alloc implements port.Queue.
func (q *queue) Alloc(p []port.Packet) int {
	t := &q.tx
	n := min(len(p), len(t.free))
	for i := range n {
		slot := t.free[len(t.free)-1]
		t.free = t.free[:len(t.free)-1]
		p[i].Data, p[i].Flags, p[i].Class, p[i].Ref = t.slots[slot][:q.room], 0, 0, firstTransmit+uintptr(slot)
	}
	if n < len(p) {
		q.counters.NoBuffer.Add(1)
	}
	return n
}

// Tx implements port.Queue.
func (q *queue) Tx(p []port.Packet) int {
	t := &q.tx
	bytes := 0
	for i := range p {
		t.queue = append(t.queue, outgoing{})
		o := &t.queue[len(t.queue)-1]
		o.slot, o.length = int32(p[i].Ref-firstTransmit), int32(len(p[i].Data))
		o.how, o.alone = p[i].Flags&(port.TxWhole|port.TxFragment), p[i].Flags.Has(port.TxAlone)
		o.peer = p[i].Peer
		if o.class = p[i].Class; o.class == q.class {
			o.class = 0
		}
		bytes += len(p[i].Data)
	}
	q.counters.TxPackets.Add(uint64(len(p)))
	q.counters.TxBytes.Add(uint64(bytes))
	if t.bytes += bytes; t.waiting() >= txBurst || t.bytes >= maxSend {
		q.send(false)
	}
	return len(p)
}

// Flush implements port.Queue.
func (q *queue) Flush() { q.send(true) }

// send passes waiting packets to the socket, as many as it accepts: all, or only messages to which no packet
// can be added any more.
func (q *queue) send(all bool) {
	t := &q.tx
	for t.waiting() > 0 {
		q.fragments(t.queue[t.head].how)
		messages := q.compose(all)
		if messages == 0 {
			break
		}
		n, errno := sendmmsg(q.own.fd, t.hdr[:messages])
		if errno == 0 && n > 0 {
			t.sent(t.packets(n))
			continue
		}
		if errno == unix.EAGAIN {
			break // the rest is sent at the next Rx or Flush
		}
		if errno != unix.EINTR {
			q.refused(errno)
		}
	}
	t.bytes = 0
	if t.head == len(t.queue) {
		t.queue, t.head = t.queue[:0], 0
	} else if t.head >= txSlots {
		t.queue, t.head = t.queue[:copy(t.queue, t.queue[t.head:])], 0
	}
}

// packets returns the number of packets in the first n messages.
func (t *transmitter) packets(n int) (sum int) {
	for i := range n {
		sum += t.msg[i].packets
	}
	return sum
}

// sent frees the slots of the first n packets, so that they are allocated in the same order again and
// adjacent slots stay adjacent.
func (t *transmitter) sent(n int) {
	for i := t.head + n - 1; i >= t.head; i-- {
		t.free = append(t.free, t.queue[i].slot)
	}
	t.head += n
	t.single = max(0, t.single-n)
}

// refused handles the first message, which the kernel did not accept.
func (q *queue) refused(errno unix.Errno) {
	t := &q.tx
	if n := t.msg[0].packets; n > 1 {
		// EIO: the interface computes no checksums, so the kernel does not split sends for it (before Linux
		// 6.11). Other errors concern these datagrams, for example a path MTU that is now smaller than one of
		// them: sent one by one they are fragmented.
		t.single = n
		if errno == unix.EIO && q.gso.CompareAndSwap(true, false) {
			q.log("the kernel refused to segment; datagrams go one by one from now on", "error", errno)
		}
		return
	}
	t.sent(1)
	q.counters.TxDropped.Add(1)
}
