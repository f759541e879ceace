package linked

import (
	"fmt"

	"urdma/dpdk/port"
)

// receive puts an arrived frame into the receive ring and returns its fate. The caller holds the network's lock.
func (q *queue) receive(frame []byte) string {
	if len(frame) > q.pool.size {
		q.counters.RxErrors.Add(1)
		return Oversize
	}
	if len(q.rx) >= q.port.opt.RxRing {
		q.counters.RxDropped.Add(1)
		return Overrun
	}
	buf, ok := q.pool.take(ownedRing)
	if !ok {
		q.counters.NoBuffer.Add(1)
		return Overrun
	}
	copy(q.pool.bytes[buf], frame)
	a := arrival{buf: buf, size: len(frame)}
	if q.port.opt.Checksum {
		a.flags = verify(frame)
	}
	q.rx = append(q.rx, a)
	return Delivered
}

// Rx implements port.Queue.
func (q *queue) Rx(pk []port.Packet) int {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	n := min(len(pk), len(q.rx))
	bytes := 0
	for i, a := range q.rx[:n] {
		q.pool.move(a.buf, ownedRx)
		b := q.pool.bytes[a.buf]
		pk[i] = port.Packet{Data: b[:a.size:a.size], Flags: a.flags, Ref: uintptr(a.buf) + 1}
		bytes += a.size
	}
	q.rx = q.rx[n:]
	if len(q.rx) == 0 {
		q.rx = nil
	}
	q.counters.RxPackets.Add(uint64(n))
	q.counters.RxBytes.Add(uint64(bytes))
	return n
}

// Free implements port.Queue.
func (q *queue) Free(pk []port.Packet) {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	for i := range pk {
		if buf, ok := q.pool.owned(pk[i].Ref, "Free", ownedRx, ownedTx); ok {
			q.pool.put(buf)
		}
	}
}

// Alloc implements port.Queue.
func (q *queue) Alloc(pk []port.Packet) int {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	for i := range pk {
		buf, ok := q.pool.take(ownedTx)
		if !ok {
			q.counters.NoBuffer.Add(1)
			return i
		}
		q.allocNo++
		q.pool.order[buf] = q.allocNo
		pk[i] = port.Packet{Data: q.pool.bytes[buf], Ref: uintptr(buf) + 1}
	}
	return len(pk)
}

// Tx implements port.Queue.
func (q *queue) Tx(pk []port.Packet) int {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	for i := range pk {
		if len(q.txq)+q.flying >= q.port.opt.TxRing {
			return i
		}
		q.take(&pk[i])
	}
	return len(pk)
}

// take checks one packet against the rules and queues it for Flush.
func (q *queue) take(pk *port.Packet) {
	buf, ok := q.pool.owned(pk.Ref, "Tx", ownedTx)
	if !ok {
		return
	}
	whole := q.pool.bytes[buf]
	size := len(pk.Data)
	if size < port.EtherHeaderLen || size > len(whole) || &pk.Data[0] != &whole[0] {
		q.port.opt.Misuse(fmt.Sprintf("Tx: Data of %d bytes is not a frame at the buffer's start", size))
		q.pool.put(buf)
		return
	}
	if q.pool.order[buf] < q.sentNo {
		q.port.opt.Misuse(fmt.Sprintf("Tx: buffer %d was allocated before one that was sent already", buf))
	}
	q.sentNo = q.pool.order[buf]
	q.pool.move(buf, ownedWire)
	q.pool.bytes[buf] = whole[:size]
	q.txq = append(q.txq, buf)
}

// Flush implements port.Queue.
func (q *queue) Flush() {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	queued := q.txq
	q.txq = nil
	for _, buf := range queued {
		q.transmit(buf)
	}
}

func (q *queue) transmit(buf uint32) {
	frame := q.pool.bytes[buf]
	release := func() {
		q.pool.bytes[buf] = frame[:q.pool.size]
		q.pool.put(buf)
	}
	if !q.port.out.up {
		q.counters.TxDropped.Add(1)
		release()
		return
	}
	q.counters.TxPackets.Add(1)
	q.counters.TxBytes.Add(uint64(len(frame)))
	if q.port.opt.Checksum {
		fillUDP(frame)
	}
	q.flying++
	q.port.out.transmit(frame, func() {
		q.flying--
		release()
	})
}

// ArmRx implements port.Queue. A virtual clock has no interrupts, so fd is always -1.
func (q *queue) ArmRx() (fd int, armed bool) {
	q.port.net.mu.Lock()
	defer q.port.net.mu.Unlock()
	return -1, len(q.rx) == 0
}

// DisarmRx implements port.Queue.
func (q *queue) DisarmRx() {}
