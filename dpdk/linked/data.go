package linked

import (
	"fmt"

	"urdma/dpdk/port"
)

// receive puts an arrived frame into the receive ring and says what became of
// it. The caller holds the network's lock.
func (p *Port) receive(frame []byte) string {
	if len(frame) > p.pool.size {
		p.counters.RxErrors.Add(1)
		return Oversize
	}
	if len(p.rx) >= p.opt.RxRing {
		p.counters.RxDropped.Add(1)
		return Overrun
	}
	buf, ok := p.pool.take(ownedRing)
	if !ok {
		p.counters.NoBuffer.Add(1)
		return Overrun
	}
	copy(p.pool.bytes[buf], frame)
	a := arrival{buf: buf, size: len(frame)}
	if p.opt.Checksum {
		a.flags = verify(frame)
	}
	p.rx = append(p.rx, a)
	return Delivered
}

// Rx implements port.Port.
func (p *Port) Rx(pk []port.Packet) int {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	n := min(len(pk), len(p.rx))
	bytes := 0
	for i, a := range p.rx[:n] {
		p.pool.move(a.buf, ownedRx)
		b := p.pool.bytes[a.buf]
		pk[i] = port.Packet{Data: b[:a.size:a.size], Flags: a.flags, Ref: uintptr(a.buf) + 1}
		bytes += a.size
	}
	p.rx = p.rx[n:]
	if len(p.rx) == 0 {
		p.rx = nil
	}
	p.counters.RxPackets.Add(uint64(n))
	p.counters.RxBytes.Add(uint64(bytes))
	return n
}

// Free implements port.Port.
func (p *Port) Free(pk []port.Packet) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	for i := range pk {
		if buf, ok := p.pool.owned(pk[i].Ref, "Free", ownedRx, ownedTx); ok {
			p.pool.put(buf)
		}
	}
}

// Retain implements port.Port: the pool is roomy, so it only checks.
func (p *Port) Retain(pk *port.Packet) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.pool.owned(pk.Ref, "Retain", ownedRx)
	return nil
}

// Alloc implements port.Port.
func (p *Port) Alloc(pk []port.Packet) int {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	for i := range pk {
		buf, ok := p.pool.take(ownedTx)
		if !ok {
			p.counters.NoBuffer.Add(1)
			return i
		}
		p.allocNo++
		p.pool.order[buf] = p.allocNo
		pk[i] = port.Packet{Data: p.pool.bytes[buf], Ref: uintptr(buf) + 1}
	}
	return len(pk)
}

// Tx implements port.Port.
func (p *Port) Tx(pk []port.Packet) int {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	for i := range pk {
		if len(p.txq)+p.flying >= p.opt.TxRing {
			return i
		}
		p.take(&pk[i])
	}
	return len(pk)
}

// take checks one packet against the rules and queues it for Flush.
func (p *Port) take(pk *port.Packet) {
	buf, ok := p.pool.owned(pk.Ref, "Tx", ownedTx)
	if !ok {
		return
	}
	whole := p.pool.bytes[buf]
	size := len(pk.Data)
	if size < port.EtherHeaderLen || size > len(whole) || &pk.Data[0] != &whole[0] {
		p.opt.Misuse(fmt.Sprintf("Tx: Data of %d bytes is not a frame at the buffer's start", size))
		p.pool.put(buf)
		return
	}
	if p.pool.order[buf] < p.sentNo {
		p.opt.Misuse(fmt.Sprintf("Tx: buffer %d was allocated before one that was sent already", buf))
	}
	p.sentNo = p.pool.order[buf]
	p.pool.move(buf, ownedWire)
	p.pool.bytes[buf] = whole[:size]
	p.txq = append(p.txq, buf)
}

// Flush implements port.Port.
func (p *Port) Flush() {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	q := p.txq
	p.txq = nil
	for _, buf := range q {
		p.transmit(buf)
	}
}

func (p *Port) transmit(buf uint32) {
	frame := p.pool.bytes[buf]
	release := func() {
		p.pool.bytes[buf] = frame[:p.pool.size]
		p.pool.put(buf)
	}
	if !p.out.up {
		p.counters.TxDropped.Add(1)
		release()
		return
	}
	p.counters.TxPackets.Add(1)
	p.counters.TxBytes.Add(uint64(len(frame)))
	if p.opt.Checksum {
		fillUDP(frame)
	}
	p.flying++
	p.out.transmit(frame, func() {
		p.flying--
		release()
	})
}
