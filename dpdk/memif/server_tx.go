package memif

import (
	"urdma/dpdk/port"
)

// posted is how many buffers the client has posted that were not handed out.
func (s *serverSide) posted() uint16 {
	head := s.l.tx.head()
	n := head - s.txEnd
	if out := s.txEnd - s.txNext; n > s.l.tx.size()-out {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the transmit ring's head to %d, more than a ring from %d", head, s.txNext)
		return 0
	}
	return n
}

// claim checks the buffer of slot txEnd and remembers it.
func (s *serverSide) claim() (b *txBuffer, ok bool) {
	d := s.l.tx.load(s.txEnd)
	mem, ok := s.bytes(d)
	if !ok {
		return nil, false
	}
	b = &s.txBuf[s.txEnd&s.l.tx.mask]
	b.mem, b.region = mem, d.region
	return b, true
}

// alloc hands out posted buffers. Where the client's are too small for a whole
// frame it hands out private ones, and sendCopy spreads the frame over slots.
func (s *serverSide) alloc(pk []port.Packet) int {
	left := s.posted()
	for i := range pk {
		if left == 0 {
			s.q.counters.NoBuffer.Add(1)
			return i
		}
		b, ok := s.claim()
		if !ok {
			return i
		}
		if len(b.mem) < s.q.room {
			if s.txEnd != s.txNext || !s.q.allocOne(&pk[i]) {
				return i
			}
			left--
			continue
		}
		slot := s.txEnd & s.l.tx.mask
		s.txState[slot] = slotOwned
		s.txEnd++
		left--
		s.l.held++
		pk[i] = port.Packet{Data: b.mem[:s.q.room:s.q.room], Ref: makeRef(s.l.epoch, refTx, uint32(slot))}
	}
	return len(pk)
}

func (s *serverSide) sendOwn(slot uint32, size int) sendResult {
	mask := s.l.tx.mask
	if slot > uint32(mask) || s.txState[slot] != slotOwned {
		return sendDropped
	}
	next := s.txNext & mask
	if uint16(slot) == next {
		s.emit(size, 0)
		s.skipFreed()
		return sendDone
	}
	frame := s.txBuf[slot].mem[:size]
	result := sendDropped // the caller sends out of allocation order
	if s.txState[next] == slotFreed && len(s.txBuf[next].mem) >= size {
		copy(s.txBuf[next].mem, frame)
		s.emit(size, 0)
		result = sendDone
	}
	s.freeTx(slot)
	s.skipFreed()
	return result
}

// skipFreed starts over at txNext when no handed-out slot is left in use.
// freeTx keeps the newest slot owned, so a freed oldest slot has an owned one
// behind it and must stay as a hole to be filled.
func (s *serverSide) skipFreed() {
	mask := s.l.tx.mask
	for s.txEnd != s.txNext && s.txState[(s.txEnd-1)&mask] == slotFreed {
		s.txEnd--
		s.txState[s.txEnd&mask] = slotPeer
	}
}

// emit finishes slot txNext: size bytes are in its buffer.
func (s *serverSide) emit(size int, flags uint16) {
	slot := s.txNext & s.l.tx.mask
	s.l.tx.storeLength(s.txNext, desc{flags: flags, region: s.txBuf[slot].region, length: uint32(size)})
	s.txState[slot] = slotPeer
	s.txNext++
}

// sendCopy sends a private buffer, over as many slots as it needs. It is only
// used when no slot is handed out: either all of the client's buffers are too
// small, or the link has just come up.
func (s *serverSide) sendCopy(frame []byte) sendResult {
	if s.txEnd != s.txNext {
		return sendDropped
	}
	need, room := uint16(0), 0
	for left := s.posted(); room < len(frame); need++ {
		if need == left {
			s.txEnd = s.txNext
			return sendFull
		}
		b, ok := s.claim()
		if !ok || len(b.mem) == 0 {
			s.txEnd = s.txNext
			return sendDropped
		}
		room += len(b.mem)
		s.txEnd++
	}
	for ; need > 0; need-- {
		n := copy(s.txBuf[s.txNext&s.l.tx.mask].mem, frame)
		frame = frame[n:]
		flags := uint16(0)
		if need > 1 {
			flags = descNext
		}
		s.emit(n, flags)
	}
	return sendDone
}

func (s *serverSide) publish() {
	if s.txShown != s.txNext {
		s.txShown = s.txNext
		s.l.tx.setTail(s.txShown)
	}
}
