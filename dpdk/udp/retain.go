package udp

import "urdma/dpdk/port"

const (
	retainable     = 8192     // packets; or two receive buffers of them
	retainableSize = 64 << 20 // bytes; or two receive buffers
	// mostRetainable is twice the longest possible window.
	mostRetainable     = 1 << 17
	mostRetainableSize = 256 << 20
	// firstRetained is the Ref of the first slot for retained packets; smaller Refs are receive buffers.
	firstRetained = 1 << 16
)

// retained has the memory for packets that are kept for long. It grows with use.
type retained struct {
	room  int
	limit int
	slots [][]byte
	free  []int32
}

// init allows as many packets as peers may be allowed to send when each connection may keep half of the free
// slots. A machine that allows a larger receive buffer has the memory for that.
func (k *retained) init(room, window int) {
	k.room = room
	k.limit = min(retainable, retainableSize/room)
	k.limit = max(k.limit, min(2*window, mostRetainable, mostRetainableSize/room))
}

// take copies a packet to a slot of its own.
func (k *retained) take(p *port.Packet) bool {
	if len(k.free) == 0 {
		if len(k.slots) == k.limit {
			return false
		}
		k.free = append(k.free, int32(len(k.slots)))
		k.slots = append(k.slots, make([]byte, k.room))
	}
	i := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	p.Data = k.slots[i][:copy(k.slots[i], p.Data)]
	p.Ref = firstRetained + uintptr(i)
	return true
}

// Retain implements port.Queue: the datagram is copied out of its receive buffer, which may contain many
// others.
func (q *queue) Retain(p *port.Packet) error {
	if p.Ref >= firstRetained {
		return nil
	}
	buffer := int32(p.Ref)
	if len(p.Data) > q.kept.room || !q.kept.take(p) {
		q.counters.NoBuffer.Add(1)
		return port.ErrNoBuffer
	}
	q.rx.release(buffer)
	return nil
}

// Retainable implements port.Queue.
func (q *queue) Retainable() int { return q.kept.limit }

// Free implements port.Queue.
func (q *queue) Free(p []port.Packet) {
	for i := range p {
		switch ref := p[i].Ref; {
		case ref >= firstTransmit:
			q.tx.free = append(q.tx.free, int32(ref-firstTransmit))
		case ref >= firstRetained:
			q.kept.free = append(q.kept.free, int32(ref-firstRetained))
		default:
			q.rx.release(int32(ref))
		}
	}
}
