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

// headBytes covers a frame's headers, and a small frame completely.
const headBytes = 3 * lineBytes

const lineBytes = 64

// fetchHeads loads the first cache lines of a burst's frames from the cache of the core that wrote them. Done
// here they load in parallel, because nothing depends on their contents; in the parser they would load one
// frame after the other. It returns the number of bytes in the frames.
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

// ownHeads writes to the first cache lines of buffers in which frames will be built, for the same reason:
// they are in the cache of the core that read the previous frames.
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
	// Backwards, so that unsent buffers are freed newest first, which leaves no hole in the server's ring.
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
		q.heap.put(r.index())
	case l == nil || l.epoch != r.epoch():
		q.releaseOld(r.epoch())
	case r.kind() == refTx:
		ok = l.side.freeTx(r.index())
	default:
		ok = l.side.freeRx(r.index())
	}
	if ok {
		l.held--
	}
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

// allocPrivate returns private buffers, whose frames Tx copies or drops.
func (q *queue) allocPrivate(pk []port.Packet) int {
	for i := range pk {
		if !q.allocOne(&pk[i]) {
			return i
		}
	}
	return len(pk)
}

func (q *queue) allocOne(pk *port.Packet) bool {
	index, b, ok := q.heap.take()
	if !ok {
		q.counters.NoBuffer.Add(1)
		return false
	}
	*pk = port.Packet{Data: b, Ref: makeRef(0, refHeap, index)}
	return true
}

// Tx implements port.Queue. Frames are visible to the peer at once; Flush only wakes it. If another queue is
// filling the ring that a frame needs, Tx stops as it does at a full ring, and the caller tries again.
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

// filling is the ring that is being filled; consecutive frames of a burst for the same ring are put into it
// together.
type filling struct {
	l    *share
	to   int // number of the ring; -1: none yet
	sent int // frames put into the ring
}

// begin switches to the ring of a frame; false: another queue is filling that ring.
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

// end publishes the frames put into the ring, and lets other queues fill it.
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

// stuck reports whether there are several rings and this full one has been full for long.
func (f *filling) stuck() bool {
	return f.to >= 0 && len(f.l.tx) > 1 && f.sent == 0 && f.l.tx[f.to].stuck()
}

// send sends one packet; unless the ring is full, the port owns the packet afterwards.
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
	// A private buffer, or one of an earlier link, which stays readable until it is freed. So a caller that
	// allocated before the link was lost loses no frames.
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

// ArmRx implements port.Queue. The fd is an epoll instance and always the same. A net_memif peer publishes
// frames with weaker ordering than ours, so its wake-up can be missed in a window of nanoseconds; callers
// must limit their sleep.
func (q *queue) ArmRx() (fd int, armed bool) {
	l := q.enter()
	q.armed = true
	switch {
	case l == nil:
		// A link may have been delivered after enter looked: its wake-up stays in wakeFD until DisarmRx.
		return q.epfd, true
	case q.refused:
		return -1, true // another queue is filling the ring, and does not report when it has finished
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
		_, _ = unix.EpollWait(q.epfd, q.events[:], 0) // takes the kicks so far
	}
}
