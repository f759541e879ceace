package memif

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

// link is one connection: the shared memory and what is needed to use it. Its
// control goroutine makes it and watches the socket; the worker owns the rest
// from adoption to retirement (see doc.go).
type link struct {
	epoch   uint32
	peer    string
	ctl     control
	regions [][]byte
	rx, tx  ring      // the ring we consume, the ring we fill
	rxWake  interrupt // the peer wakes us
	txWake  interrupt // we wake the peer
	side    side

	// dead: do not touch the rings any more. Set by either goroutine, never
	// cleared.
	dead atomic.Bool
	// cause is the rule the peer broke, if that is why.
	cause atomic.Pointer[error]

	// held counts packets of this link's memory that the worker's caller owns.
	// Worker only.
	held int
}

// side is what the two roles do differently with the rings. All methods are the
// worker's, and may call link.fault.
type side interface {
	// rx receives into p, as port.Queue.Rx.
	rx(p []port.Packet) int
	// pending reports whether rx would find something.
	pending() bool
	// alloc hands out buffers of the link, as port.Queue.Alloc, until there are
	// none, or none that a whole frame fits in.
	alloc(p []port.Packet) int
	// sendOwn sends a buffer from alloc, sendCopy any other frame.
	sendOwn(index uint32, size int) sendResult
	sendCopy(frame []byte) sendResult
	// publish shows the peer what was sent.
	publish()
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

// fault ends the link because the peer broke a rule. The worker calls it; the
// control goroutine wakes up and does the rest.
func (l *link) fault(format string, args ...any) {
	err := fmt.Errorf("memif: peer "+format, args...)
	l.cause.CompareAndSwap(nil, &err)
	l.dead.Store(true)
	l.ctl.conn.CloseRead()
}

// destroy gives everything back. Nobody may use the link any more.
func (l *link) destroy() {
	l.rxWake.close()
	l.txWake.close()
	l.unmap()
}

func (l *link) unmap() {
	for _, mem := range l.regions {
		unix.Munmap(mem)
	}
	l.regions = nil
	l.rx, l.tx = ring{}, ring{}
}
