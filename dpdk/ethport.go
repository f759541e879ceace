package dpdk

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"urdma/dpdk/port"
)

// ethPort is a DPDK port with one queue.
type ethPort struct {
	c        *C.struct_urdma_port
	info     port.Info
	counters port.Counters // of the link
	queue    ethQueue

	closed atomic.Bool
	mu     sync.Mutex // orders Link and Stats against Close
}

var _ port.Port = (*ethPort)(nil)

// Info implements port.Port.
func (p *ethPort) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *ethPort) Queues() int { return 1 }

// Queue implements port.Port.
func (p *ethPort) Queue(int) port.Queue { return &p.queue }

// Link implements port.Port.
func (p *ethPort) Link() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed.Load() && C.urdma_link(p.c.id) != 0
}

// Stats implements port.Port: our own counters and the driver's.
func (p *ethPort) Stats() port.Stats {
	s := p.counters.Snapshot().Add(p.queue.counters.Snapshot())
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
	p.queue.close()
	C.urdma_port_close(p.c)
	C.free(unsafe.Pointer(p.c))
	p.c = nil
	return nil
}
