package memif

import (
	"urdma/dpdk/port"
)

// arrived returns how many slots the client has filled that rx has not processed.
func (s *serverSide) arrived() uint16 {
	head := s.l.rx.head()
	n := head - s.rxNext
	if held := s.rxNext - s.rxDone; n > s.l.rx.size()-held {
		s.q.counters.RxErrors.Add(1)
		s.l.fault("moved the receive ring's head to %d, more than a ring from %d", head, s.rxDone)
		return 0
	}
	return n
}

func (s *serverSide) pending() bool { return s.arrived() > 0 }

func (s *serverSide) rx(pk []port.Packet) (n int) {
	left := s.arrived()
	skipped := false
	for left > 0 && n < len(pk) {
		d := s.l.rx.load(s.rxNext)
		if d.flags&descNext != 0 {
			used, ok := s.gather(&pk[n], left)
			if used == 0 {
				break
			}
			left -= used
			skipped = true
			if ok {
				n++
			}
			continue
		}
		left--
		b, ok := s.bytes(d)
		if !ok {
			break
		}
		slot := s.rxNext & s.l.rx.mask
		s.rxNext++
		if len(b) < port.EtherHeaderLen || len(b) > s.q.room {
			s.q.counters.RxErrors.Add(1)
			s.rxState[slot] = slotFreed
			skipped = true
			continue
		}
		s.rxState[slot] = slotOwned
		s.l.held++
		pk[n] = port.Packet{Data: b, Ref: makeRef(s.l.epoch, refRx, uint32(slot))}
		n++
	}
	if skipped {
		s.settle()
	}
	return n
}

// gather copies a frame that fills several slots to a private buffer and frees the slots. used is the number
// of slots, 0 after a fault; ok is false if there is no packet.
func (s *serverSide) gather(pk *port.Packet, left uint16) (used uint16, ok bool) {
	g := newGathering(s.q)
	for more := true; more; used++ {
		if used == left {
			g.abandon()
			s.q.counters.RxErrors.Add(1)
			s.l.fault("left a frame over %d slots unfinished", used)
			return 0, false
		}
		d := s.l.rx.load(s.rxNext + used)
		b, ok := s.bytes(d)
		if !ok {
			g.abandon()
			return 0, false
		}
		g.add(b)
		if more = d.flags&descNext != 0; more {
			// As a client, net_memif 22.11 never clears this flag, even if the slot's next frame is not
			// continued; so we clear it while we own the slot.
			d.flags = 0
			s.l.rx.storeLength(s.rxNext+used, d)
		}
	}
	for range used {
		s.rxState[s.rxNext&s.l.rx.mask] = slotFreed
		s.rxNext++
	}
	return used, g.finish(pk)
}
