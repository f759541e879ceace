package memif

import (
	"urdma/dpdk/port"
)

// reclaim takes back the buffers of frames the server is done with.
func (s *clientSide) reclaim() {
	tail := s.l.tx.tail()
	if tail-s.txTail > s.txShown-s.txTail {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the transmit ring's tail to %d, outside [%d, %d]", tail, s.txTail, s.txShown)
		return
	}
	for s.txTail != tail {
		s.put(s.txBuf[s.txTail&s.l.tx.mask])
		s.txOut--
		s.txTail++
	}
}

func (s *clientSide) alloc(pk []port.Packet) int {
	if s.txOut+len(pk) > s.txLimit || len(s.free) < len(pk)+s.rxSpare {
		s.reclaim()
	}
	n := min(len(pk), s.txLimit-s.txOut, len(s.free))
	if n < len(pk) {
		s.q.counters.NoBuffer.Add(1)
	}
	for i := range pk[:n] {
		buf, _ := s.take(bufAlloc)
		pk[i] = port.Packet{Data: s.bytes(buf, s.q.room), Ref: makeRef(s.l.epoch, refTx, buf)}
	}
	s.txOut += n
	s.l.held += n
	return n
}

// full makes room in the transmit ring if it can.
func (s *clientSide) full() bool {
	if s.txHead-s.txTail < s.l.tx.size() {
		return false
	}
	s.publish()
	s.reclaim()
	return s.txHead-s.txTail == s.l.tx.size()
}

func (s *clientSide) sendOwn(buf uint32, size int) sendResult {
	if int(buf) >= len(s.state) || s.state[buf] != bufAlloc {
		return sendDropped
	}
	if s.full() {
		return sendFull
	}
	s.enqueue(buf, size)
	return sendDone
}

func (s *clientSide) sendCopy(frame []byte) sendResult {
	if s.full() {
		return sendFull
	}
	if s.txOut >= s.txLimit {
		return sendFull // the caller holds everything
	}
	buf, ok := s.take(bufFlight)
	if !ok {
		return sendFull
	}
	s.txOut++
	copy(s.bytes(buf, len(frame)), frame)
	s.enqueue(buf, len(frame))
	return sendDone
}

func (s *clientSide) enqueue(buf uint32, size int) {
	s.state[buf] = bufFlight
	s.txBuf[s.txHead&s.l.tx.mask] = buf
	s.l.tx.store(s.txHead, desc{length: uint32(size), offset: uint32(s.base + int(buf)*s.stride)})
	s.txHead++
}

func (s *clientSide) publish() {
	if n := s.txHead - s.txShown; n > 0 {
		s.l.tx.advanceHead(n)
		s.txShown = s.txHead
	}
}
