package steer

import (
	"net/netip"
	"sync/atomic"

	"urdma/dpdk/port"
	"urdma/wire"
)

// Hub is what the ports of an urdmad have in common.
type Hub struct {
	workers int
	numbers *Numbers
	ports   []*Port // by device
	// wake gets a worker out of its sleep, from any goroutine.
	wake func(worker int)
}

// NewHub has so many workers share ports.
func NewHub(workers int, n *Numbers, wake func(worker int)) *Hub {
	return &Hub{workers: workers, numbers: n, wake: wake}
}

// Port is a port that workers share.
type Port struct {
	under  port.Port
	hub    *Hub
	info   port.Info
	queues []*queue
	own    bool // each worker has a queue of the port's
	roce   bool // the port speaks RoCEv2, not TRP
	addr   atomic.Pointer[netip.Addr]
	rings  [][]*ring // from worker, to worker; none to itself
	out    []*ring   // of each worker, to the wire; none where own
}

// Add shares a port, the next device, whose address is own and which speaks RoCEv2 or TRP.
func (h *Hub) Add(under port.Port, own netip.Addr, roce bool) *Port {
	p := &Port{under: under, hub: h, info: under.Info(), own: under.Queues() >= h.workers, roce: roce}
	p.info.Siblings = true
	p.Renumber(own)
	if p.info.ReceiveWindow == 0 || p.info.ReceiveWindow > slots {
		p.info.ReceiveWindow = slots
	}
	length, capacity := roomOf(under)
	capacity += wire.EncapLen // of what was a frame, see queue.as
	for w := range h.workers {
		q := newQueue(p, w, capacity)
		p.queues = append(p.queues, q)
		if !p.own {
			p.out = append(p.out, newRing(length, capacity))
		}
		to := make([]*ring, h.workers)
		for other := range to {
			if other != w {
				to[other] = newRing(length, capacity)
			}
		}
		p.rings = append(p.rings, to)
	}
	h.ports = append(h.ports, p)
	return p
}

// Counts is what the ports' own queues gave a worker.
type Counts struct {
	Received uint64 `counter:"packets_received"`
	HandedOn uint64 `counter:"packets_handed_on"` // of those: copied into another worker's ring, and not for this one
}

// Counts is that of a worker, from any goroutine.
func (h *Hub) Counts(worker int) (c Counts) {
	for _, p := range h.ports {
		c.Received += p.queues[worker].received.Load()
		c.HandedOn += p.queues[worker].handedOn.Load()
	}
	return c
}

// Renumber gives the port another address, from any goroutine.
func (p *Port) Renumber(own netip.Addr) { p.addr.Store(&own) }

// roomOf is the length and the capacity of a port's transmit buffers.
func roomOf(p port.Port) (length, capacity int) {
	var one [1]port.Packet
	info := p.Info()
	length = info.MTU + port.EtherHeaderLen
	capacity = length
	if q := p.Queue(0); q.Alloc(one[:]) == 1 {
		length, capacity = len(one[0].Data), cap(one[0].Data)
		q.Free(one[:])
	}
	return length, capacity
}

// For is the port as a worker has it.
func (p *Port) For(worker int) port.Port {
	v := view{p, worker}
	if g, ok := p.under.(port.Grouper); ok && p.own {
		return groupView{v, g}
	}
	return v
}

// groupView is that of a port with groups, of which each queue has its own.
type groupView struct {
	view
	groups port.Grouper
}

// Join is port.Grouper's.
func (v groupView) Join(_ int, group netip.Addr) (number uint16, err error) {
	return v.groups.Join(v.worker, group)
}

// Leave is port.Grouper's.
func (v groupView) Leave(_ int, number uint16) { v.groups.Leave(v.worker, number) }

// view is a port as one worker has it: with one queue.
type view struct {
	*Port
	worker int
}

// Queue is port.Port's.
func (v view) Queue(int) port.Queue { return v.queues[v.worker] }

// Info is port.Port's.
func (p *Port) Info() port.Info { return p.info }

// Queues is port.Port's.
func (p *Port) Queues() int { return 1 }

// Offloads is port.Offloader's.
func (p *Port) Offloads() string {
	if o, ok := p.under.(port.Offloader); ok {
		return o.Offloads()
	}
	return ""
}

// Link is port.Port's.
func (p *Port) Link() bool { return p.under.Link() }

// Watch is port.Port's.
func (p *Port) Watch(f func(up bool)) { p.under.Watch(f) }

// Stats is port.Port's: those of the port below, and what rings had no room for.
func (p *Port) Stats() port.Stats {
	s := p.under.Stats()
	for _, to := range p.rings {
		for _, r := range to {
			if r != nil {
				s.RxDropped += r.dropped.Load()
			}
		}
	}
	return s
}

// Close is port.Port's.
func (p *Port) Close() error { return p.under.Close() }
