package memif

import (
	"math/bits"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// Rx implements port.Queue.
func (q *queue) Rx(pk []port.Packet) int {
	l := q.enter()
	if l == nil || len(pk) == 0 || !l.reads() {
		return 0
	}
	n := l.side.rx(pk)
	if n == 0 {
		return 0
	}
	bytes := q.fetchHeads(pk[:n])
	q.counters.RxPackets.Add(uint64(n))
	q.counters.RxBytes.Add(uint64(bytes))
	return n
}

// headBytes covers the headers of a frame, and all of a small one.
const headBytes = 3 * lineBytes

const lineBytes = 64

// fetchHeads loads the first lines of a burst's frames, which are in the cache of
// the core that wrote them: all at once here, where nothing depends on what they
// say, one frame after the other if left to the parser. It returns how many
// bytes the frames have.
func (q *queue) fetchHeads(pk []port.Packet) (bytes int) {
	var seen byte
	for i := range pk {
		b := pk[i].Data
		bytes += len(b)
		for at := 0; at < min(len(b), headBytes); at += lineBytes {
			seen |= b[at]
		}
	}
	q.seen = seen
	return bytes
}

// ownHeads writes to the first lines of buffers that frames will be built in, for
// the same reason: the core that read the last frames there has them.
func ownHeads(pk []port.Packet) {
	for i := range pk {
		b := pk[i].Data
		for at := 0; at < min(len(b), headBytes); at += lineBytes {
			b[at] = 0
		}
	}
}

// Free implements port.Queue.
func (q *queue) Free(pk []port.Packet) {
	l := q.enter()
	// Backwards, so that unsent buffers go back newest first, which costs the
	// server's ring no hole.
	for i := len(pk) - 1; i >= 0; i-- {
		q.free(l, ref(pk[i].Ref))
	}
	if l != nil {
		l.side.settle()
	}
}

func (q *queue) free(l *share, r ref) {
	ok := false
	switch {
	case r.kind() == refHeap:
		if q.heap.put(r.index()) == heapKept {
			q.retained--
		}
		return
	case l == nil || l.epoch != r.epoch():
		ok = q.releaseOld(r.epoch())
	case r.kind() == refTx:
		ok = l.side.freeTx(r.index())
	default:
		ok = l.side.freeRx(r.index())
	}
	if ok && r.kind() == refKept {
		q.retained--
	}
	if ok && l != nil && l.epoch == r.epoch() {
		l.held--
	}
}

// Retainable implements port.Queue.
func (q *queue) Retainable() int { return retainable }

// Retain implements port.Queue: where a ring slot is tied up by the packet, the
// frame is copied to a private buffer.
func (q *queue) Retain(pk *port.Packet) error {
	r := ref(pk.Ref)
	if r.kind() == refKept || r.kind() == refHeap && q.heap.used(r.index()) == heapKept {
		return nil
	}
	if q.retained == retainable {
		q.counters.NoBuffer.Add(1)
		return port.ErrNoBuffer
	}
	l := q.enter()
	switch {
	case r.kind() == refHeap:
		if !q.heap.keep(r.index()) {
			return errForeignPacket
		}
	case r.kind() != refRx, (l == nil || l.epoch != r.epoch()) && q.old(r.epoch()) == nil:
		return errForeignPacket
	case l != nil && l.epoch == r.epoch() && l.side.keepRx(r.index()):
		pk.Ref = makeRef(r.epoch(), refKept, r.index())
	default:
		q.copyOut(l, pk)
	}
	q.retained++
	return nil
}

// copyOut moves a received frame to a private buffer, which there is: fewer than
// retainable are kept.
func (q *queue) copyOut(l *share, pk *port.Packet) {
	index, b, _ := q.heap.take(heapKept)
	n := copy(b, pk.Data)
	q.free(l, ref(pk.Ref))
	if l != nil {
		l.side.settle()
	}
	pk.Data, pk.Ref = b[:n:n], makeRef(0, refHeap, index)
}

// Alloc implements port.Queue.
func (q *queue) Alloc(pk []port.Packet) int {
	l := q.enter()
	if l == nil {
		return q.allocPrivate(pk)
	}
	n := l.side.alloc(pk)
	ownHeads(pk[:n])
	if n < len(pk) && l.dead.Load() {
		n += q.allocPrivate(pk[n:])
	}
	return n
}

// allocPrivate hands out private buffers, which Tx copies or drops.
func (q *queue) allocPrivate(pk []port.Packet) int {
	for i := range pk {
		if !q.allocOne(&pk[i]) {
			return i
		}
	}
	return len(pk)
}

func (q *queue) allocOne(pk *port.Packet) bool {
	index, b, ok := q.heap.take(heapPassing)
	if !ok {
		q.counters.NoBuffer.Add(1)
		return false
	}
	*pk = port.Packet{Data: b, Ref: makeRef(0, refHeap, index)}
	return true
}

// Tx implements port.Queue. What it takes is visible to the peer at once; Flush
// only wakes it. Where another queue is filling the ring that a frame is for, it takes
// no more: as with a full ring the caller tries again.
func (q *queue) Tx(pk []port.Packet) int {
	l := q.enter()
	f := filling{l: l, to: -1}
	packets, bytes, n := 0, 0, 0
	q.refused = false
	for ; n < len(pk); n++ {
		if l != nil && (f.to < 0 || len(l.tx) > 1) && !f.begin(q, pk[n].Data) {
			q.refused = true
			break
		}
		size := len(pk[n].Data)
		result := q.send(l, f.to, &pk[n])
		if result == sendFull && f.stuck() {
			q.free(l, ref(pk[n].Ref))
			result = sendDropped
		}
		if result == sendFull {
			break
		}
		if result == sendDropped {
			q.counters.TxDropped.Add(1)
			continue
		}
		f.sent++
		packets++
		bytes += size
	}
	f.end()
	if packets > 0 {
		q.counters.TxPackets.Add(uint64(packets))
		q.counters.TxBytes.Add(uint64(bytes))
	}
	return n
}

// filling is the ring that a burst's frames are put into, one after the other while they
// leave by the same.
type filling struct {
	l    *share
	to   int // ring; -1: none yet
	sent int // frames put into it
}

// begin turns to the ring of a frame; false: another queue is filling that.
func (f *filling) begin(q *queue, frame []byte) bool {
	to := 0
	if n := len(f.l.tx); n > 1 {
		to = q.choose(frame, n)
	}
	if to == f.to {
		return true
	}
	f.end()
	if !f.l.tx[to].tryFill(f.l.alone) {
		return false
	}
	f.to = to
	q.toWake |= 1 << to
	return true
}

// end shows the peer what the ring was filled with, and leaves it to others.
func (f *filling) end() {
	if f.to < 0 {
		return
	}
	t := f.l.tx[f.to]
	if f.sent > 0 {
		f.l.side.publish(f.to)
		t.fullSince = time.Time{}
	}
	t.filled(f.l.alone)
	f.to, f.sent = -1, 0
}

// stuck reports that one of several rings, found full, has been for long.
func (f *filling) stuck() bool {
	return f.to >= 0 && len(f.l.tx) > 1 && f.sent == 0 && f.l.tx[f.to].stuck()
}

// send passes on one packet; unless the ring is full the packet is the port's
// afterwards.
func (q *queue) send(l *share, to int, pk *port.Packet) sendResult {
	r := ref(pk.Ref)
	size := len(pk.Data)
	legal := size >= port.EtherHeaderLen && size <= q.room
	if l == nil || l.dead.Load() || !legal {
		q.free(l, r)
		return sendDropped
	}
	if r.kind() == refTx && r.epoch() == l.epoch {
		result := l.side.sendOwn(to, r.index(), size)
		if result != sendFull {
			l.held--
		}
		return result
	}
	// A private buffer, or one from before the link was lost and came back,
	// which stays readable until it is released: a caller that allocates ahead
	// loses nothing.
	result := l.side.sendCopy(to, pk.Data)
	if result != sendFull {
		q.free(l, r)
	}
	return result
}

// Flush implements port.Queue.
func (q *queue) Flush() {
	l := q.enter()
	if l == nil {
		return
	}
	for rings := q.toWake; rings != 0; rings &= rings - 1 {
		if t := l.tx[bits.TrailingZeros(rings)]; !t.masked() {
			t.wake.kick()
		}
	}
	q.toWake = 0
}

// ArmRx implements port.Queue. The fd is an epoll instance and always the same.
// A net_memif peer publishes a frame with less ordering than we do, so that its
// wake-up can be missed in a window of nanoseconds; callers bound their sleep.
func (q *queue) ArmRx() (fd int, armed bool) {
	l := q.enter()
	q.armed = true
	switch {
	case l == nil:
		// A link may have come after enter looked and before this: its wake-up
		// stays in wakeFD until DisarmRx.
		return q.epfd, true
	case q.refused:
		return -1, true // the ring is another queue's for a moment, and nobody tells when it is not
	case !l.reads():
		return q.epfd, true
	}
	l.rx.maskInterrupt(false)
	if l.side.pending() {
		l.rx.maskInterrupt(true)
		q.armed = false
		return q.epfd, false
	}
	return q.epfd, true
}

// DisarmRx implements port.Queue.
func (q *queue) DisarmRx() {
	q.armed = false
	var b [8]byte
	unix.Read(q.wakeFD, b[:])
	if l := q.enter(); l != nil && l.reads() {
		l.rx.maskInterrupt(true)
		l.rxWake.drain()
	}
}
