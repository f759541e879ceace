package memif

import (
	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// Rx implements port.Port.
func (p *Port) Rx(pk []port.Packet) int {
	l := p.enter()
	if l == nil || len(pk) == 0 {
		return 0
	}
	n := l.side.rx(pk)
	if n == 0 {
		return 0
	}
	bytes := 0
	for i := range pk[:n] {
		bytes += len(pk[i].Data)
	}
	p.counters.RxPackets.Add(uint64(n))
	p.counters.RxBytes.Add(uint64(bytes))
	return n
}

// Free implements port.Port.
func (p *Port) Free(pk []port.Packet) {
	l := p.enter()
	// Backwards, so that unsent buffers go back newest first, which costs the
	// server's ring no hole.
	for i := len(pk) - 1; i >= 0; i-- {
		p.free(l, ref(pk[i].Ref))
	}
	if l != nil {
		l.side.settle()
	}
}

func (p *Port) free(l *link, r ref) {
	if r.kind() == refHeap {
		p.heap.put(r.index())
		return
	}
	if l == nil || l.epoch != r.epoch() {
		p.releaseOld(r.epoch())
		return
	}
	ok := false
	if r.kind() == refRx {
		ok = l.side.freeRx(r.index())
	} else {
		ok = l.side.freeTx(r.index())
	}
	if ok {
		l.held--
	}
}

// Retain implements port.Port: where a ring slot is tied up by the packet, the
// frame is copied to a private buffer.
func (p *Port) Retain(pk *port.Packet) error {
	l := p.enter()
	r := ref(pk.Ref)
	switch {
	case r.kind() == refHeap:
		return nil
	case r.kind() != refRx:
		return errForeignPacket
	case l != nil && l.epoch == r.epoch() && !l.side.scarce():
		return nil
	case l == nil && p.old(r.epoch()) == nil:
		return errForeignPacket
	}
	index, b, ok := p.heap.take()
	if !ok {
		p.counters.NoBuffer.Add(1)
		return port.ErrNoBuffer
	}
	n := copy(b, pk.Data)
	p.free(l, r)
	if l != nil {
		l.side.settle()
	}
	pk.Data, pk.Ref = b[:n:n], makeRef(0, refHeap, index)
	return nil
}

// Alloc implements port.Port.
func (p *Port) Alloc(pk []port.Packet) int {
	l := p.enter()
	if l == nil {
		return p.allocPrivate(pk)
	}
	n := l.side.alloc(pk)
	if n < len(pk) && l.dead.Load() {
		n += p.allocPrivate(pk[n:])
	}
	return n
}

// allocPrivate hands out private buffers, which Tx copies or drops.
func (p *Port) allocPrivate(pk []port.Packet) int {
	for i := range pk {
		if !p.allocOne(&pk[i]) {
			return i
		}
	}
	return len(pk)
}

func (p *Port) allocOne(pk *port.Packet) bool {
	index, b, ok := p.heap.take()
	if !ok {
		p.counters.NoBuffer.Add(1)
		return false
	}
	*pk = port.Packet{Data: b, Ref: makeRef(0, refHeap, index)}
	return true
}

// Tx implements port.Port. What it takes is visible to the peer at once; Flush
// only wakes it.
func (p *Port) Tx(pk []port.Packet) int {
	l := p.enter()
	packets, bytes, n := 0, 0, 0
	for ; n < len(pk); n++ {
		size := len(pk[n].Data)
		result := p.send(l, &pk[n])
		if result == sendFull {
			break
		}
		if result == sendDropped {
			p.counters.TxDropped.Add(1)
			continue
		}
		packets++
		bytes += size
	}
	if packets > 0 {
		l.side.publish()
		p.counters.TxPackets.Add(uint64(packets))
		p.counters.TxBytes.Add(uint64(bytes))
	}
	return n
}

// send passes on one packet; unless the ring is full the packet is the port's
// afterwards.
func (p *Port) send(l *link, pk *port.Packet) sendResult {
	r := ref(pk.Ref)
	size := len(pk.Data)
	legal := size >= port.EtherHeaderLen && size <= p.room
	if l == nil || l.dead.Load() || !legal {
		p.free(l, r)
		return sendDropped
	}
	if r.kind() == refTx && r.epoch() == l.epoch {
		result := l.side.sendOwn(r.index(), size)
		if result != sendFull {
			l.held--
		}
		return result
	}
	// A private buffer, or one from before the link was lost and came back,
	// which stays readable until it is released: a caller that allocates ahead
	// loses nothing.
	result := l.side.sendCopy(pk.Data)
	if result != sendFull {
		p.free(l, r)
	}
	return result
}

// Flush implements port.Port.
func (p *Port) Flush() {
	l := p.enter()
	if l != nil && !l.tx.masked() {
		l.txWake.kick()
	}
}

// ArmRx implements port.Port. The fd is an epoll instance and always the same.
// A net_memif peer publishes a frame with less ordering than we do, so that its
// wake-up can be missed in a window of nanoseconds; callers bound their sleep.
func (p *Port) ArmRx() (fd int, armed bool) {
	l := p.enter()
	if l == nil {
		p.armed = true
		// A link may have come after enter looked and before this: its wake-up
		// stays in wakeFD until DisarmRx.
		return p.epfd, true
	}
	l.rx.maskInterrupt(false)
	if l.side.pending() {
		l.rx.maskInterrupt(true)
		return p.epfd, false
	}
	p.armed = true
	return p.epfd, true
}

// DisarmRx implements port.Port.
func (p *Port) DisarmRx() {
	p.armed = false
	var b [8]byte
	unix.Read(p.wakeFD, b[:])
	if l := p.enter(); l != nil {
		l.rx.maskInterrupt(true)
		l.rxWake.drain()
	}
}
