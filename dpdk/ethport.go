package dpdk

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"urdma/dpdk/port"
)

// ethPort is a DPDK port with one queue each way. A Packet's Ref is its mbuf's
// address, or for a private copy its number in copies shifted left, plus 1
// (mbufs are aligned).
type ethPort struct {
	c        *C.struct_urdma_port
	info     port.Info
	room     int
	counters port.Counters
	burst    []C.struct_urdma_packet // c.burst
	wake     wake

	// The worker's.
	stash     []port.Packet // received by ArmRx, given out by the next Rx; within stashed
	stashed   [armBurst]port.Packet
	held      int // received mbufs the caller has
	heldLimit int // with more, Retain copies
	copies    copies
	rxBad     uint64
	downAt    time.Time // when the link was last found down or up
	down      bool

	closed atomic.Bool
	mu     sync.Mutex // orders Link and Stats against Close
}

var _ port.Port = (*ethPort)(nil)

const (
	maxBurst = C.URDMA_BURST
	armBurst = 32
)

// Info implements port.Port.
func (p *ethPort) Info() port.Info { return p.info }

// Rx implements port.Port.
func (p *ethPort) Rx(pk []port.Packet) int {
	if n := len(p.stash); n > 0 {
		n = copy(pk, p.stash)
		p.stash = p.stash[n:]
		return n
	}
	return p.receive(pk[:min(len(pk), maxBurst)])
}

func (p *ethPort) receive(pk []port.Packet) int {
	if len(pk) == 0 {
		return 0
	}
	n := int(C.urdma_rx(p.c, C.uint(len(pk))))
	if bad := uint64(p.c.rx_bad); bad != p.rxBad {
		p.counters.RxErrors.Add(bad - p.rxBad)
		p.rxBad = bad
	}
	if n == 0 {
		return 0
	}
	bytes := 0
	for i := range pk[:n] {
		b := &p.burst[i]
		bytes += int(b.len)
		pk[i] = port.Packet{
			Data:  unsafe.Slice((*byte)(b.data), int(b.len)),
			Flags: rxFlags(uint32(b.flags)),
			Ref:   uintptr(b.mbuf),
		}
	}
	p.held += n
	p.counters.RxPackets.Add(uint64(n))
	p.counters.RxBytes.Add(uint64(bytes))
	return n
}

// rxFlags: shim.h numbers them as package port does; asserted in a test.
func rxFlags(f uint32) port.Flags { return port.Flags(f) }

// Free implements port.Port.
func (p *ethPort) Free(pk []port.Packet) {
	n := 0
	for i := range pk {
		ref := pk[i].Ref
		if ref&1 != 0 {
			p.copies.put(ref)
			continue
		}
		if ref == 0 {
			continue
		}
		p.setMbuf(n, ref)
		if n++; n == maxBurst {
			C.urdma_free(p.c, C.uint(n))
			p.held -= n
			n = 0
		}
	}
	if n > 0 {
		C.urdma_free(p.c, C.uint(n))
		p.held -= n
	}
}

// setMbuf writes an mbuf's address into the burst array without making a Go
// pointer of it.
func (p *ethPort) setMbuf(i int, ref uintptr) {
	*(*uintptr)(unsafe.Pointer(&p.burst[i].mbuf)) = ref
}

// Retain implements port.Port: the pool is roomy, until the caller keeps more
// than was planned for.
func (p *ethPort) Retain(pk *port.Packet) error {
	if p.held <= p.heldLimit || pk.Ref&1 != 0 {
		return nil
	}
	ref, b, ok := p.copies.take()
	if !ok {
		p.counters.NoBuffer.Add(1)
		return port.ErrNoBuffer
	}
	n := copy(b, pk.Data)
	p.setMbuf(0, pk.Ref)
	C.urdma_free(p.c, 1)
	p.held--
	pk.Data, pk.Ref = b[:n:n], ref
	return nil
}

// Alloc implements port.Port. Held counts these too: they are out of the pool.
func (p *ethPort) Alloc(pk []port.Packet) (n int) {
	for n < len(pk) {
		want := min(len(pk)-n, maxBurst)
		got := int(C.urdma_alloc(p.c, C.uint(want)))
		for i := range got {
			b := &p.burst[i]
			pk[n+i] = port.Packet{Data: unsafe.Slice((*byte)(b.data), p.room), Ref: uintptr(b.mbuf)}
		}
		n += got
		p.held += got
		if got < want {
			p.counters.NoBuffer.Add(1)
			break
		}
	}
	return n
}

// Tx implements port.Port. A driver that takes nothing because its link is down
// would block the caller's queue for ever, so those frames are dropped.
func (p *ethPort) Tx(pk []port.Packet) (n int) {
	for n < len(pk) {
		part := pk[n:min(len(pk), n+maxBurst)]
		bytes := 0
		for i := range part {
			p.setMbuf(i, part[i].Ref)
			p.burst[i].len = C.uint32_t(len(part[i].Data))
			bytes += len(part[i].Data)
		}
		took := int(C.urdma_tx(p.c, C.uint(len(part))))
		for i := took; i < len(part); i++ {
			bytes -= len(part[i].Data)
		}
		p.held -= took
		p.counters.TxPackets.Add(uint64(took))
		p.counters.TxBytes.Add(uint64(bytes))
		n += took
		if took < len(part) {
			break
		}
	}
	if n == 0 && len(pk) > 0 && p.isDown() {
		p.counters.TxDropped.Add(uint64(len(pk)))
		p.Free(pk)
		return len(pk)
	}
	return n
}

// isDown asks for the link's state at most every 10 ms.
func (p *ethPort) isDown() bool {
	if now := time.Now(); now.Sub(p.downAt) > 10*time.Millisecond {
		p.downAt = now
		p.down = C.urdma_link(p.c.id) == 0
	}
	return p.down
}

// Flush implements port.Port: DPDK drivers send at once.
func (p *ethPort) Flush() {}

// ArmRx implements port.Port. After the interrupt is armed the queue is looked
// at once more, because frames from before don't interrupt; what is found
// there waits for the next Rx.
func (p *ethPort) ArmRx() (fd int, armed bool) {
	if len(p.stash) > 0 {
		return p.wake.fd, false
	}
	p.wake.arm(p.c, true)
	p.stash = p.stashed[:p.receive(p.stashed[:])]
	if len(p.stash) > 0 {
		p.wake.arm(p.c, false)
		return p.wake.fd, false
	}
	return p.wake.fd, true
}

// DisarmRx implements port.Port.
func (p *ethPort) DisarmRx() { p.wake.arm(p.c, false) }

// Link implements port.Port.
func (p *ethPort) Link() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed.Load() && C.urdma_link(p.c.id) != 0
}

// Stats implements port.Port: our own counters and the driver's.
func (p *ethPort) Stats() port.Stats {
	s := p.counters.Snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	var c C.struct_urdma_counters
	if p.closed.Load() || C.urdma_counters(p.c.id, &c) != 0 {
		return s
	}
	s.RxDropped += uint64(c.imissed)
	s.RxErrors += uint64(c.ierrors)
	s.NoBuffer += uint64(c.rx_nombuf)
	return s
}

// Close implements port.Port.
func (p *ethPort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	p.wake.close()
	p.Free(p.stash)
	p.stash = nil
	C.urdma_port_close(p.c)
	p.burst = nil
	C.free(unsafe.Pointer(p.c))
	p.c = nil
	return nil
}
