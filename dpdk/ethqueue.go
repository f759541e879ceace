package dpdk

// #include "shim.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"urdma/dpdk/port"
)

// ethQueue is a queue of a DPDK port, used by one worker. A Packet's Ref is its mbuf's address.
type ethQueue struct {
	c        *C.struct_urdma_queue
	room     int
	burst    []C.struct_urdma_packet // c.burst
	counters port.Counters
	wake     wake

	stash   []port.Packet // received by ArmRx, for the next Rx; a part of stashed
	stashed [armBurst]port.Packet
	rxBad   uint64
	quiet   bool // nothing was received since ArmRx returned armed

	link   *port.LinkState // of the port
	gone   *atomic.Bool    // of the port
	kernel bool            // uses a network interface, whose link state is known at once
}

var _ port.Queue = (*ethQueue)(nil)

const (
	maxBurst = C.URDMA_BURST
	armBurst = 32
)

// Rx implements port.Queue.
func (q *ethQueue) Rx(pk []port.Packet) int {
	if n := len(q.stash); n > 0 {
		n = copy(pk, q.stash)
		q.stash = q.stash[n:]
		return n
	}
	return q.receive(pk[:min(len(pk), maxBurst)])
}

func (q *ethQueue) receive(pk []port.Packet) int {
	if len(pk) == 0 {
		return 0
	}
	n := int(C.urdma_rx(q.c, C.uint(len(pk))))
	if bad := uint64(q.c.rx_bad); bad != q.rxBad {
		q.counters.RxErrors.Add(bad - q.rxBad)
		q.rxBad = bad
	}
	if n == 0 {
		return 0
	}
	q.quiet = false
	bytes := 0
	for i := range pk[:n] {
		b := &q.burst[i]
		bytes += int(b.len)
		pk[i] = port.Packet{
			Data:  unsafe.Slice((*byte)(b.data), int(b.len)),
			Flags: rxFlags(uint32(b.flags)),
			Ref:   uintptr(b.mbuf),
		}
	}
	q.counters.RxPackets.Add(uint64(n))
	q.counters.RxBytes.Add(uint64(bytes))
	return n
}

// rxFlags: shim.h has the same numbers as package port; a test checks that.
func rxFlags(f uint32) port.Flags { return port.Flags(f) }

// Free implements port.Queue.
func (q *ethQueue) Free(pk []port.Packet) {
	n := 0
	for i := range pk {
		ref := pk[i].Ref
		if ref == 0 {
			continue
		}
		q.setMbuf(n, ref)
		if n++; n == maxBurst {
			C.urdma_free(q.c, C.uint(n))
			n = 0
		}
	}
	if n > 0 {
		C.urdma_free(q.c, C.uint(n))
	}
}

// setMbuf writes an mbuf's address into the burst array without creating a Go pointer.
func (q *ethQueue) setMbuf(i int, ref uintptr) {
	*(*uintptr)(unsafe.Pointer(&q.burst[i].mbuf)) = ref
}

// Alloc implements port.Queue.
func (q *ethQueue) Alloc(pk []port.Packet) (n int) {
	for n < len(pk) {
		want := min(len(pk)-n, maxBurst)
		got := int(C.urdma_alloc(q.c, C.uint(want)))
		for i := range got {
			b := &q.burst[i]
			pk[n+i] = port.Packet{Data: unsafe.Slice((*byte)(b.data), q.room), Ref: uintptr(b.mbuf)}
		}
		n += got
		if got < want {
			q.counters.NoBuffer.Add(1)
			break
		}
	}
	return n
}

// Tx implements port.Queue. Without a link the frames are dropped. If the link is only polled, they are
// dropped once the driver accepts none.
func (q *ethQueue) Tx(pk []port.Packet) (n int) {
	if q.kernel && !q.link.Up() {
		return q.drop(pk)
	}
	for n < len(pk) {
		part := pk[n:min(len(pk), n+maxBurst)]
		took := q.transmit(part)
		n += took
		if took < len(part) {
			break
		}
	}
	if n == 0 && !q.link.Up() {
		return q.drop(pk)
	}
	return n
}

// transmit passes at most one burst to the driver.
func (q *ethQueue) transmit(pk []port.Packet) int {
	for i := range pk {
		q.setMbuf(i, pk[i].Ref)
		q.burst[i].len = C.uint32_t(len(pk[i].Data))
	}
	took := int(C.urdma_tx(q.c, C.uint(len(pk))))
	bytes := 0
	for i := range pk[:took] {
		bytes += len(pk[i].Data)
	}
	q.counters.TxPackets.Add(uint64(took))
	q.counters.TxBytes.Add(uint64(bytes))
	return took
}

func (q *ethQueue) drop(pk []port.Packet) int {
	q.counters.TxDropped.Add(uint64(len(pk)))
	q.Free(pk)
	return len(pk)
}

// Flush implements port.Queue: DPDK drivers send at once.
func (q *ethQueue) Flush() {}

// ArmRx implements port.Queue. After arming the interrupt it receives once more, because earlier frames cause
// no interrupt; frames found then are returned by the next Rx. If a wake-up brought no frame, the socket may
// have an error (its interface went down), which would cause wake-ups for ever; so it is cleared.
func (q *ethQueue) ArmRx() (fd int, armed bool) {
	if len(q.stash) > 0 {
		return q.wake.fd, false
	}
	if q.gone.Load() {
		return q.wake.never, true
	}
	if q.quiet {
		q.wake.clearError()
	}
	q.wake.arm(q.c, true)
	q.stash = q.stashed[:q.receive(q.stashed[:])]
	if len(q.stash) > 0 {
		q.wake.arm(q.c, false)
		return q.wake.fd, false
	}
	q.quiet = true
	return q.wake.fd, true
}

// DisarmRx implements port.Queue.
func (q *ethQueue) DisarmRx() { q.wake.arm(q.c, false) }

// close frees the frames that ArmRx received. The worker must not use the queue any more.
func (q *ethQueue) close() {
	q.wake.close()
	q.Free(q.stash)
	q.stash, q.burst, q.c = nil, nil, nil
}
