package memif

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// link is one connection: the shared memory and the data needed to use it. Its control goroutine creates it
// and watches the socket; each queue's worker owns its share from adoption to retirement (see doc.go).
type link struct {
	epoch   uint32
	peer    string
	ctl     control
	regions [][]byte
	shares  []*share   // one for each queue
	tx      []*outRing // the rings for sending
	// alone: there is one queue, so no other queue fills a ring.
	alone bool

	// dead: the rings must not be used any more. Set by any goroutine, never cleared.
	dead atomic.Bool
	// cause is the peer's violation of the protocol, if that ended the link.
	cause atomic.Pointer[error]

	users  atomic.Int32 // shares that may use the rings
	mapped atomic.Int32 // shares whose worker may own packets in the memory
}

// share is the part of a link that belongs to one queue: the ring that it reads, if there is one, and the
// buffers that it owns. It may fill any ring.
type share struct {
	*link
	epoch  uint32    // copy of the link's epoch, for speed
	rx     ring      // without descriptors: there is no ring
	rxWake interrupt // the peer wakes us
	side   side

	// held counts packets in this link's memory that the worker's caller owns. Used by the worker only.
	held int
}

// outRing is a ring for sending, which any queue may fill.
type outRing struct {
	ring
	wake interrupt // we wake the peer
	// filling is locked by the queue that fills the ring; other queues do not wait for it.
	filling sync.Mutex
	// fullSince is the time since when the ring has been full, as far as seen. Guarded by filling.
	fullSince time.Time
}

// tryFill lets a queue fill the ring; false: another queue is filling it.
func (t *outRing) tryFill(alone bool) bool { return alone || t.filling.TryLock() }

// filled lets other queues fill the ring.
func (t *outRing) filled(alone bool) {
	if !alone {
		t.filling.Unlock()
	}
}

// maxFull is how long frames wait for room in one of several rings. If a reader takes no frame for so long,
// its frames are dropped, so that frames for other readers do not wait.
const maxFull = 100 * time.Millisecond

// stuck reports whether the ring, which is full, has been full for maxFull.
func (t *outRing) stuck() bool {
	now := time.Now()
	if t.fullSince.IsZero() {
		t.fullSince = now
	}
	return now.Sub(t.fullSince) > maxFull
}

// side has the methods that differ between client and server. The worker calls them, and they may call
// link.fault. Rings for sending are identified by number; tryFill must have succeeded for them.
type side interface {
	// rx receives into p, as port.Queue.Rx does, if there is a ring to read.
	rx(p []port.Packet) int
	// pending reports whether rx would find something.
	pending() bool
	// alloc returns buffers of the link, as port.Queue.Alloc does, until there are none or they are too small
	// for a whole frame.
	alloc(p []port.Packet) int
	// sendOwn sends a buffer from alloc, sendCopy any other frame.
	sendOwn(to int, index uint32, size int) sendResult
	sendCopy(to int, frame []byte) sendResult
	// publish makes sent frames visible to the peer.
	publish(to int)
	// freeRx and freeTx free buffers of this link; ok is false if the caller does not own the buffer.
	freeRx(index uint32) (ok bool)
	freeTx(index uint32) (ok bool)
	// settle returns freed slots to the peer. It is called once in each Free.
	settle()
}

type sendResult uint8

const (
	sendFull sendResult = iota
	sendDone
	sendDropped // the caller broke package port's rules, or the link just died
)

// share distributes the link among so many queues.
func (l *link) share(queues int) {
	l.alone = queues == 1
	for range queues {
		l.shares = append(l.shares, &share{link: l, epoch: l.epoch, rxWake: interrupt{fd: -1}})
	}
	l.users.Store(int32(queues))
	l.mapped.Store(int32(queues))
}

// fault ends the link because the peer violated the protocol. A worker calls it; the control goroutine wakes
// up and closes the connection.
func (l *link) fault(format string, args ...any) {
	err := fmt.Errorf("memif: peer "+format, args...)
	l.cause.CompareAndSwap(nil, &err)
	l.dead.Store(true)
	l.ctl.conn.CloseRead()
}

// reads reports whether there is a ring to read.
func (s *share) reads() bool { return s.rx.desc != nil }

// leave stops using the rings.
func (s *share) leave() {
	s.rxWake.close()
	s.rx = ring{}
	if s.users.Add(-1) == 0 {
		for _, t := range s.tx {
			t.wake.close()
		}
	}
}

// forget releases the memory; no packet is held any more.
func (s *share) forget() {
	if s.mapped.Add(-1) == 0 {
		s.unmap()
	}
}

// destroy releases everything. The queue must not use the share any more.
func (s *share) destroy() {
	s.leave()
	s.forget()
}

// destroy is for a link that no queue has adopted.
func (l *link) destroy() {
	for _, s := range l.shares {
		s.rxWake.close()
	}
	for _, t := range l.tx {
		t.wake.close()
	}
	l.unmap()
}

func (l *link) unmap() {
	for _, mem := range l.regions {
		unix.Munmap(mem)
	}
	l.regions = nil
	for _, t := range l.tx {
		t.ring = ring{}
	}
}

// ringsIn returns the number of rings that are read.
func (l *link) ringsIn() (n int) {
	for _, s := range l.shares {
		if s.reads() {
			n++
		}
	}
	return n
}
