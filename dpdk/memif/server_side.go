package memif

// slotState says who owns a ring slot's buffer.
type slotState uint8

const (
	slotPeer  slotState = iota // the client
	slotOwned                  // our caller: received, or to be sent
	slotFreed                  // freed by our caller, not yet returned to the client
)

// serverSide uses the rings as the server: buffers belong to the client and to their slots. Slots freed or
// sent out of order must wait for the oldest slot, or their data must be moved to it.
//
// Invariants: received slots are [rxDone, rxNext); each is owned or freed, the oldest is owned (or settle is
// due).
type serverSide struct {
	q  *queue
	l  *share
	tx []*serverTx
	// inPlace: frames are built in the ring's buffers. With several rings, or several queues that fill them,
	// the slot of a frame is not known before it is sent.
	inPlace bool

	rxNext, rxDone uint16
	rxState        []slotState
}

// serverTx is a ring for sending. Allocated slots (inPlace) are [next, end), at most the ring's size; each is
// owned or freed, the newest is owned. buf has the contents of each descriptor when it was checked, and the
// descriptor is not read again. Only the queue that fills the ring uses these fields.
type serverTx struct {
	outRing
	next, end, shown uint16
	state            []slotState
	buf              []txBuffer
}

// txBuffer is a buffer posted by the client, after checking.
type txBuffer struct {
	mem    []byte
	region uint16
}

func newServerTx(r ring) *serverTx {
	r.setTail(0)
	return &serverTx{outRing: outRing{ring: r, wake: interrupt{fd: -1}}, state: make([]slotState, r.size()),
		buf: make([]txBuffer, r.size())}
}

func newServerSide(q *queue, l *share, tx []*serverTx) *serverSide {
	return &serverSide{q: q, l: l, tx: tx, inPlace: l.alone && len(tx) == 1, rxState: make([]slotState, len(l.rx.desc))}
}

// bytes finds the memory that a descriptor describes; ok is false if the descriptor is invalid, which is a
// fault of the peer.
func (s *serverSide) bytes(d desc) (b []byte, ok bool) {
	if int(d.region) < len(s.l.regions) {
		if b, ok = span(s.l.regions[d.region], d.offset, d.length); ok {
			return b, true
		}
	}
	s.q.counters.RxErrors.Add(1)
	s.l.fault("described %d bytes at offset %d of region %d, outside what it shares", d.length, d.offset, d.region)
	return nil, false
}

func (s *serverSide) freeRx(slot uint32) bool {
	if slot >= uint32(len(s.rxState)) || s.rxState[slot] != slotOwned {
		return false
	}
	s.rxState[slot] = slotFreed
	return true
}

func (s *serverSide) freeTx(slot uint32) bool {
	t := s.tx[0]
	if !s.inPlace || slot >= uint32(len(t.state)) || t.state[slot] != slotOwned {
		return false
	}
	t.state[slot] = slotFreed
	t.skipFreed()
	return true
}

// settle returns freed slots to the client, oldest first.
func (s *serverSide) settle() {
	if !s.l.reads() {
		return
	}
	mask := s.l.rx.mask
	done := s.rxDone
	for done != s.rxNext && s.rxState[done&mask] == slotFreed {
		s.rxState[done&mask] = slotPeer
		done++
	}
	if done != s.rxDone {
		s.rxDone = done
		s.l.rx.setTail(done)
	}
}
