package memif

import (
	"urdma/dpdk/port"
)

// reclaim takes back the buffers of frames that the server has finished with. It returns other queues'
// buffers to them.
func (s *clientSide) reclaim(t *clientTx) {
	tail := t.ring.tail()
	if tail-t.tail > t.shown-t.tail {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the transmit ring's tail to %d, outside [%d, %d]", tail, t.tail, t.shown)
		return
	}
	for t.tail != tail {
		buf := t.buf[t.tail&t.mask]
		if int(buf-s.first) < len(s.state) {
			s.put(buf)
			s.txOut--
		} else {
			s.l.shares[int(buf)/len(s.state)].side.(*clientSide).returnBuffer(buf)
		}
		t.tail++
	}
}

// returnBuffer is called by another queue to return one of our buffers after it was sent.
func (s *clientSide) returnBuffer(buf uint32) {
	for {
		newest := s.returned.Load()
		s.next[buf-s.first] = newest
		if s.returned.CompareAndSwap(newest, buf+1) {
			return
		}
	}
}

// takeReturned takes the buffers that other queues have returned.
func (s *clientSide) takeReturned() {
	for at := s.returned.Swap(0); at != 0; at = s.next[at-1-s.first] {
		s.put(at - 1)
		s.txOut--
	}
}

// reclaimAll reclaims in all rings, so that buffers can be allocated.
func (s *clientSide) reclaimAll() {
	for _, t := range s.tx {
		if t.tryFill(s.l.alone) {
			s.reclaim(t)
			t.filled(s.l.alone)
		}
	}
	s.takeReturned()
}

func (s *clientSide) alloc(pk []port.Packet) int {
	if s.txOut+len(pk) > s.txLimit || len(s.free) < len(pk)+s.rxSpare {
		s.reclaimAll()
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

// full reports whether a ring has no room, after reclaiming.
func (s *clientSide) full(t *clientTx) bool { return t.head-t.tail == t.size() && !s.makeRoom(t) }

func (s *clientSide) makeRoom(t *clientTx) bool {
	t.publish()
	s.reclaim(t)
	return t.head-t.tail < t.size()
}

func (s *clientSide) sendOwn(to int, buf uint32, size int) sendResult {
	if !s.is(buf, bufAlloc) {
		return sendDropped
	}
	t := s.tx[to]
	if s.full(t) {
		return sendFull
	}
	s.enqueue(t, buf, size)
	return sendDone
}

func (s *clientSide) sendCopy(to int, frame []byte) sendResult {
	t := s.tx[to]
	if s.full(t) {
		return sendFull
	}
	if s.txOut >= s.txLimit {
		return sendFull // the caller has received packets in all of them
	}
	buf, ok := s.take(bufFlight)
	if !ok {
		return sendFull
	}
	s.txOut++
	copy(s.bytes(buf, len(frame)), frame)
	s.enqueue(t, buf, len(frame))
	return sendDone
}

func (s *clientSide) enqueue(t *clientTx, buf uint32, size int) {
	s.state[buf-s.first] = bufFlight
	t.buf[t.head&t.mask] = buf
	t.store(t.head, desc{length: uint32(size), offset: uint32(s.base + int(buf)*s.stride)})
	t.head++
}

func (s *clientSide) publish(to int) { s.tx[to].publish() }

func (t *clientTx) publish() {
	if n := t.head - t.shown; n > 0 {
		t.advanceHead(n)
		t.shown = t.head
	}
}
