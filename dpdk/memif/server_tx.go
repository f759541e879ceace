package memif

import (
	"urdma/dpdk/port"
)

// posted returns how many buffers the client has posted in a ring that are not allocated.
func (s *serverSide) posted(t *serverTx) uint16 {
	head := t.head()
	n := head - t.end
	if out := t.end - t.next; n > t.size()-out {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the transmit ring's head to %d, more than a ring from %d", head, t.next)
		return 0
	}
	return n
}

// claim checks the buffer of slot end and stores its description.
func (s *serverSide) claim(t *serverTx) (b *txBuffer, ok bool) {
	d := t.load(t.end)
	mem, ok := s.bytes(d)
	if !ok {
		return nil, false
	}
	b = &t.buf[t.end&t.mask]
	b.mem, b.region = mem, d.region
	return b, true
}

// alloc returns posted buffers. If the client's are too small for a whole frame, or frames are not built
// inPlace, it returns private buffers, and sendCopy spreads the frame over slots.
func (s *serverSide) alloc(pk []port.Packet) int {
	if !s.inPlace {
		return s.q.allocPrivate(pk)
	}
	t := s.tx[0]
	left := s.posted(t)
	for i := range pk {
		if left == 0 {
			s.q.counters.NoBuffer.Add(1)
			return i
		}
		b, ok := s.claim(t)
		if !ok {
			return i
		}
		if len(b.mem) < s.q.room {
			if t.end != t.next || !s.q.allocOne(&pk[i]) {
				return i
			}
			left--
			continue
		}
		slot := t.end & t.mask
		t.state[slot] = slotOwned
		t.end++
		left--
		s.l.held++
		pk[i] = port.Packet{Data: b.mem[:s.q.room:s.q.room], Ref: makeRef(s.l.epoch, refTx, uint32(slot))}
	}
	return len(pk)
}

func (s *serverSide) sendOwn(to int, slot uint32, size int) sendResult {
	t := s.tx[to]
	if !s.inPlace || slot > uint32(t.mask) || t.state[slot] != slotOwned {
		return sendDropped
	}
	next := t.next & t.mask
	if uint16(slot) == next {
		t.emit(size, 0)
		t.skipFreed()
		return sendDone
	}
	frame := t.buf[slot].mem[:size]
	result := sendDropped // the caller does not send in the order of allocation
	if t.state[next] == slotFreed && len(t.buf[next].mem) >= size {
		copy(t.buf[next].mem, frame)
		t.emit(size, 0)
		result = sendDone
	}
	s.freeTx(slot)
	t.skipFreed()
	return result
}

// skipFreed starts over at next when no allocated slot is in use. freeTx keeps the newest slot owned, so a
// freed oldest slot is followed by an owned one and remains as a hole to be filled.
func (t *serverTx) skipFreed() {
	for t.end != t.next && t.state[(t.end-1)&t.mask] == slotFreed {
		t.end--
		t.state[t.end&t.mask] = slotPeer
	}
}

// emit completes slot next: its buffer contains size bytes.
func (t *serverTx) emit(size int, flags uint16) {
	slot := t.next & t.mask
	t.storeLength(t.next, desc{flags: flags, region: t.buf[slot].region, length: uint32(size)})
	t.state[slot] = slotPeer
	t.next++
}

// sendCopy sends a private buffer, in as many slots as it needs. It is only used when no slot is allocated:
// all of the client's buffers are too small, the link has just been established, or frames are not built
// inPlace.
func (s *serverSide) sendCopy(to int, frame []byte) sendResult {
	t := s.tx[to]
	if t.end != t.next {
		return sendDropped
	}
	need, room := uint16(0), 0
	for left := s.posted(t); room < len(frame); need++ {
		if need == left {
			t.end = t.next
			return sendFull
		}
		b, ok := s.claim(t)
		if !ok || len(b.mem) == 0 {
			t.end = t.next
			return sendDropped
		}
		room += len(b.mem)
		t.end++
	}
	for ; need > 0; need-- {
		n := copy(t.buf[t.next&t.mask].mem, frame)
		frame = frame[n:]
		flags := uint16(0)
		if need > 1 {
			flags = descNext
		}
		t.emit(n, flags)
	}
	return sendDone
}

func (s *serverSide) publish(to int) {
	if t := s.tx[to]; t.shown != t.next {
		t.shown = t.next
		t.setTail(t.shown)
	}
}
