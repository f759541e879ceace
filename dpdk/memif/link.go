package memif

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// link is one connection: the shared memory and what is needed to use it. Its
// control goroutine makes it and watches the socket; each queue's worker owns its
// share from adoption to retirement (see doc.go).
type link struct {
	epoch   uint32
	peer    string
	ctl     control
	regions [][]byte
	shares  []*share   // by queue
	tx      []*outRing // the rings we fill
	// alone: there is one queue, so that nobody else fills a ring.
	alone bool

	// dead: do not touch the rings any more. Set by any goroutine, never
	// cleared.
	dead atomic.Bool
	// cause is the rule the peer broke, if that is why.
	cause atomic.Pointer[error]

	users  atomic.Int32 // shares that may use the rings
	mapped atomic.Int32 // shares that may have packets of the memory
}

// share is what one queue has of a link: the ring that it reads, if there are as many,
// and the buffers that it owns. It may fill any ring.
type share struct {
	*link
	epoch  uint32    // the link's, nearer
	rx     ring      // no descriptors: there is none
	rxWake interrupt // the peer wakes us
	side   side

	// held counts packets of this link's memory that the worker's caller owns.
	// Worker only.
	held int
}

// outRing is a ring that we fill, whichever queue has something for its reader.
type outRing struct {
	ring
	wake interrupt // we wake the peer
	// filling is held by the queue that does; others do not wait for it.
	filling sync.Mutex
	// fullSince is when the ring was first found full, since it last was not. Under filling.
	fullSince time.Time
}

// tryFill has a queue fill the ring; false: another one does.
func (t *outRing) tryFill(alone bool) bool { return alone || t.filling.TryLock() }

// filled leaves the ring to others.
func (t *outRing) filled(alone bool) {
	if !alone {
		t.filling.Unlock()
	}
}

// maxFull is how long frames wait for room in one of several rings. A reader that takes
// none for so long loses what is sent to it, rather than hold up what is for others.
const maxFull = 100 * time.Millisecond

// stuck reports that the ring, found full, has been for long.
func (t *outRing) stuck() bool {
	now := time.Now()
	if t.fullSince.IsZero() {
		t.fullSince = now
	}
	return now.Sub(t.fullSince) > maxFull
}

// side is what the two roles do differently with the rings. All methods are the
// worker's, and may call link.fault. Rings to fill are named by number; the caller of
// those methods has tryFill's leave.
type side interface {
	// rx receives into p, as port.Queue.Rx, where there is a ring to read.
	rx(p []port.Packet) int
	// pending reports whether rx would find something.
	pending() bool
	// alloc hands out buffers of the link, as port.Queue.Alloc, until there are
	// none, or none that a whole frame fits in.
	alloc(p []port.Packet) int
	// sendOwn sends a buffer from alloc, sendCopy any other frame.
	sendOwn(to int, index uint32, size int) sendResult
	sendCopy(to int, frame []byte) sendResult
	// publish shows the peer what was sent.
	publish(to int)
	// freeRx and freeTx take back buffers of this link; ok is false if the
	// caller does not own it.
	freeRx(index uint32) (ok bool)
	freeTx(index uint32) (ok bool)
	// settle gives the peer what the frees released. It is called once per Free.
	settle()
	// keepRx leaves a received packet's buffer to the caller for long; ok is false
	// if the rings need it.
	keepRx(index uint32) (ok bool)
}

type sendResult uint8

const (
	sendFull sendResult = iota
	sendDone
	sendDropped // against the rules of package port, or the link just died
)

// share gives each of so many queues its part.
func (l *link) share(queues int) {
	l.alone = queues == 1
	for range queues {
		l.shares = append(l.shares, &share{link: l, epoch: l.epoch, rxWake: interrupt{fd: -1}})
	}
	l.users.Store(int32(queues))
	l.mapped.Store(int32(queues))
}

// fault ends the link because the peer broke a rule. A worker calls it; the
// control goroutine wakes up and does the rest.
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

// forget gives the memory back, of which nothing is held.
func (s *share) forget() {
	if s.mapped.Add(-1) == 0 {
		s.unmap()
	}
}

// destroy gives everything back. The queue may not use the share any more.
func (s *share) destroy() {
	s.leave()
	s.forget()
}

// destroy is for a link that no queue has seen.
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

// ringsIn is how many rings are read.
func (l *link) ringsIn() (n int) {
	for _, s := range l.shares {
		if s.reads() {
			n++
		}
	}
	return n
}
