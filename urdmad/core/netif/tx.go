package netif

import "urdma/dpdk/port"

// transmitter has the port's transmit buffers: p[:used] are built and wait for
// the port, p[used:have] are allocated ahead.
type transmitter struct {
	p          []port.Packet // as long as a burst
	used, have int
	sent       bool // something went to the port since the last Flush
	cut        bool // another host has our address: nothing may be sent
	ipID       uint16
	burst      burst // on a port of datagrams
}

// Alloc returns a transmit buffer to build a frame in, or nil when the port's
// ring is full. Nothing is sent until the frame is committed.
func (n *Interface) Alloc() []byte {
	t := &n.tx
	if t.used == t.have {
		n.push()
		t.have += n.queue.Alloc(t.p[t.have:])
		if t.used == t.have {
			return nil
		}
	}
	return t.p[t.used].Data
}

// Send sends a frame of the kernel's. It is lost where it is longer than the port's, or
// finds no buffer.
func (n *Interface) Send(frame []byte) {
	if b := n.Alloc(); len(b) >= len(frame) && len(frame) > 0 {
		n.commit(copy(b, frame))
	}
}

// commit queues the frame built in the buffer that Alloc returned last, unless the
// interface is cut off: then the buffer is the next frame's.
func (n *Interface) commit(length int) {
	t := &n.tx
	if t.cut {
		return
	}
	p := &t.p[t.used]
	p.Data = p.Data[:length]
	t.used++
	if n.tap != nil {
		n.tap.Sent(n, p.Data)
	}
}

// commitTo queues the datagram built there for a peer's socket.
func (n *Interface) commitTo(peer *port.Peer, length int, how port.Flags) {
	t := &n.tx
	p := &t.p[t.used]
	p.Data, p.Flags = p.Data[:length], how
	p.Peer = *peer
	t.used++
	t.burst.bytes += length
	t.burst.padable = false
	if n.tap != nil {
		n.tap.Sent(n, n.frameOf(p.Data, peer, n.IP(), true))
	}
}

// push hands the built frames to the port and moves the rest to the front.
func (n *Interface) push() {
	t := &n.tx
	if t.used == 0 {
		return
	}
	taken := n.queue.Tx(t.p[:t.used])
	t.sent = t.sent || taken > 0
	copy(t.p, t.p[taken:t.have])
	t.used -= taken
	t.have -= taken
	t.burst = burst{}
}

// SetQueue has the interface use another queue from now on: one around its own, or its
// own again. Not while a burst is handled. Frames that the port has no room for are lost.
func (n *Interface) SetQueue(change func(port.Queue, port.Info) port.Queue) {
	n.push()
	t := &n.tx
	n.queue.Free(t.p[:t.have])
	t.used, t.have, t.burst = 0, 0, burst{}
	n.queue = change(n.queue, n.info)
}

// Flush ends a turn: what was built goes out.
func (n *Interface) Flush() {
	n.push()
	if t := &n.tx; t.sent || t.used > 0 {
		n.queue.Flush()
		t.sent = false
	}
}

// Unsent reports whether something of an interface waits for Flush.
func (n *Interface) Unsent() bool { return n.tx.sent || n.tx.used > 0 }

// nextIPID numbers the IPv4 packets of this interface.
func (n *Interface) nextIPID() uint16 {
	n.tx.ipID++
	return n.tx.ipID
}
