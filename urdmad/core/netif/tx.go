package netif

import "urdma/dpdk/port"

// transmitter has the port's transmit buffers: p[:used] are complete and queued for the port, p[used:have]
// are allocated ahead.
type transmitter struct {
	p          []port.Packet // as long as a burst
	used, have int
	sent       bool // something was passed to the port since the last Flush
	cut        bool // another host has our address: nothing may be sent
	ipID       uint16
	burst      burst // of a port of datagrams
}

// Alloc returns a transmit buffer for a frame, or nil if the port's ring is full. Nothing is sent before
// the frame is committed.
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

// Send sends a frame from the kernel. The frame is dropped if it is longer than the port's MTU, or if there
// is no buffer.
func (n *Interface) Send(frame []byte) {
	if b := n.Alloc(); len(b) >= len(frame) && len(frame) > 0 {
		n.commit(copy(b, frame))
	}
}

// SendOut sends the frame of length bytes in the buffer that Alloc returned last by the port, even if it is for an
// address of this urdmad.
func (n *Interface) SendOut(length int) {
	n.tx.p[n.tx.used].Flags = port.TxOut
	n.commit(length)
}

// commit queues the frame in the buffer that Alloc returned last. If the interface is cut off, the buffer
// is reused instead.
func (n *Interface) commit(length int) {
	if !n.tx.cut {
		n.queued(length)
	}
}

// queued cuts the packet in the buffer that Alloc returned last to its length, and queues it.
func (n *Interface) queued(length int) {
	t := &n.tx
	p := &t.p[t.used]
	p.Data = p.Data[:length]
	t.used++
	if n.Tap != nil {
		n.Tap(n, p, true)
	}
	if n.Raw != nil {
		n.Raw(p, true)
	}
}

// commitTo queues the datagram in that buffer, for a peer's socket.
func (n *Interface) commitTo(peer *port.Peer, length int, how port.Flags) {
	t := &n.tx
	p := &t.p[t.used]
	p.Flags, p.Peer = how, *peer
	t.burst.bytes += length
	t.burst.padable = false
	n.queued(length)
}

// push passes complete frames to the port and moves the others to the front.
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

// SetQueue makes the interface use another queue: one that wraps its own, or its own again. Don't call it
// while a burst is processed. Frames that the port can't take are lost.
func (n *Interface) SetQueue(change func(port.Queue, port.Info) port.Queue) {
	n.push()
	t := &n.tx
	n.queue.Free(t.p[:t.have])
	t.used, t.have, t.burst = 0, 0, burst{}
	n.queue = change(n.queue, n.info)
}

// Flush ends a turn: it sends all queued frames.
func (n *Interface) Flush() {
	n.push()
	if t := &n.tx; t.sent || t.used > 0 {
		n.queue.Flush()
		t.sent = false
	}
}

// Unsent reports whether frames of an interface wait for Flush.
func (n *Interface) Unsent() bool { return n.tx.sent || n.tx.used > 0 }

// nextIPID returns the next IPv4 identification.
func (n *Interface) nextIPID() uint16 {
	n.tx.ipID++
	return n.tx.ipID
}
