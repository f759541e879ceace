package memif

import (
	"urdma/dpdk/port"
)

// post gives the server empty buffers. It collects a few first, because publishing the index costs both sides
// a cache line transfer.
func (s *clientSide) post() {
	r := &s.l.rx
	want := int(r.size() - (s.rxHead - s.rxNext))
	if want < min(32, int(r.size())/2) {
		return
	}
	n := min(want, len(s.free))
	for range n {
		buf, _ := s.take(bufPosted)
		s.rxBuf[s.rxHead&r.mask] = buf
		r.store(s.rxHead, desc{length: uint32(s.stride), offset: uint32(s.base + int(buf)*s.stride)})
		s.rxHead++
	}
	if n > 0 {
		r.advanceHead(uint16(n))
	}
}

// arrived returns how many slots the server has filled that rx has not processed.
func (s *clientSide) arrived() uint16 {
	tail := s.l.rx.tail()
	n := tail - s.rxNext
	if n > s.rxHead-s.rxNext {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the receive ring's tail to %d, outside [%d, %d]", tail, s.rxNext, s.rxHead)
		return 0
	}
	return n
}

func (s *clientSide) pending() bool { return s.arrived() > 0 }

func (s *clientSide) rx(pk []port.Packet) (n int) {
	left := s.arrived()
	for left > 0 && n < len(pk) {
		d := s.l.rx.load(s.rxNext)
		if d.flags&descNext != 0 {
			used, ok := s.gather(&pk[n], left)
			if used == 0 {
				break
			}
			left -= used
			if ok {
				n++
			}
			continue
		}
		left--
		buf := s.rxBuf[s.rxNext&s.l.rx.mask]
		if d.length < port.EtherHeaderLen || d.length > uint32(s.q.room) {
			if !s.badLength(d.length) {
				break
			}
			continue
		}
		s.rxNext++
		s.state[buf-s.first] = bufHeld
		s.l.held++
		pk[n] = port.Packet{Data: s.bytes(buf, int(d.length)), Ref: makeRef(s.l.epoch, refRx, buf)}
		n++
	}
	s.post()
	return n
}

// badLength skips a slot whose frame is too short or too long; ok is false if the length exceeds the buffer,
// which means that the peer broke the protocol.
func (s *clientSide) badLength(length uint32) (ok bool) {
	s.q.counters.RxErrors.Add(1)
	if length > uint32(s.stride) {
		s.l.fault("says %d bytes are in a buffer of %d", length, s.stride)
		return false
	}
	s.put(s.rxBuf[s.rxNext&s.l.rx.mask])
	s.rxNext++
	return true
}

// gather copies a frame that fills several slots to a private buffer. used is the number of slots, 0 after a
// fault; ok is false if there is no packet.
func (s *clientSide) gather(pk *port.Packet, left uint16) (used uint16, ok bool) {
	g := newGathering(s.q)
	for more := true; more; used++ {
		slot := s.rxNext + used
		d := s.l.rx.load(slot)
		if used == left || d.length > uint32(s.stride) {
			g.abandon()
			s.q.counters.RxErrors.Add(1)
			s.l.fault("left a frame over %d slots unfinished, or says %d bytes are in a buffer of %d", used, d.length, s.stride)
			return 0, false
		}
		g.add(s.bytes(s.rxBuf[slot&s.l.rx.mask], int(d.length)))
		more = d.flags&descNext != 0
	}
	for range used {
		s.put(s.rxBuf[s.rxNext&s.l.rx.mask])
		s.rxNext++
	}
	return used, g.finish(pk)
}
