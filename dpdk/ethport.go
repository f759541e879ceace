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

// ethPort is a DPDK port.
type ethPort struct {
	c      *C.struct_urdma_port
	info   port.Info
	link   port.LinkState
	queues []ethQueue

	software bool        // not a hardware device
	rss      bool        // the device chooses queues by UDP port number, as configured
	gone     atomic.Bool // the device, or its network interface, no longer exists
	ifIndex  uint32      // of its network interface, or 0
	borrowed *borrowed   // its network interface; nil: the driver reports the link
	poll     linkPoll

	closed bool
	mu     sync.Mutex // guards calls to the driver against Close
}

var _ port.Port = (*ethPort)(nil)

// Info implements port.Port.
func (p *ethPort) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *ethPort) Queues() int { return len(p.queues) }

// Queue implements port.Port.
func (p *ethPort) Queue(i int) port.Queue { return &p.queues[i] }

// Offloads implements port.Offloader.
func (p *ethPort) Offloads() string {
	switch {
	case len(p.queues) == 1:
		return ""
	case p.rss:
		return "receive queues chosen by UDP port number"
	}
	return "receive queues as the driver chooses"
}

// Link implements port.Port.
func (p *ethPort) Link() bool { return p.link.Up() }

// Watch implements port.Port.
func (p *ethPort) Watch(f func(up bool)) { p.link.Watch(f) }

// Stats implements port.Port: our own counters and the driver's.
func (p *ethPort) Stats() port.Stats {
	s := p.link.Stats()
	for i := range p.queues {
		s = s.Add(p.queues[i].counters.Snapshot())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var c C.struct_urdma_counters
	if p.closed || p.c.device_closed != 0 || C.urdma_counters(p.c.id, &c) != 0 {
		return s
	}
	s.RxDropped += uint64(c.imissed)
	s.RxErrors += uint64(c.ierrors)
	s.NoBuffer += uint64(c.rx_nombuf)
	return s
}

// Close implements port.Port.
func (p *ethPort) Close() error {
	p.poll.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.link.Close()
	if p.borrowed != nil {
		p.borrowed.unfollow()
	}
	for i := range p.queues {
		p.queues[i].close()
	}
	if p.borrowed != nil && p.borrowed.replaced() {
		eal.kept.Store(true)
	} else {
		C.urdma_port_close(p.c)
		C.free(unsafe.Pointer(p.c))
	}
	p.c = nil
	if p.borrowed != nil {
		p.borrowed.close() // last: it was changed before the device was opened
	}
	return nil
}
