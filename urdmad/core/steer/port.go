package steer

import (
	"net/netip"
	"sync/atomic"

	"urdma/dpdk/port"
	"urdma/wire"
)

// Hub is common to all ports of a urdmad.
type Hub struct {
	workers int
	numbers *Numbers
	ports   []*Port // by device
	// wake wakes a sleeping worker; any goroutine may call it.
	wake func(worker int)
}

// NewHub returns a Hub for so many workers.
func NewHub(workers int, n *Numbers, wake func(worker int)) *Hub {
	return &Hub{workers: workers, numbers: n, wake: wake}
}

// Port is a port that workers share.
type Port struct {
	under  port.Port
	hub    *Hub
	info   port.Info
	queues []*queue
	own    bool // each worker has a queue of the port
	roce   bool // the port uses RoCEv2 rather than TRP
	addr   atomic.Pointer[netip.Addr]
	rings  [][]*ring // by sending and receiving worker; nil if both are the same
	out    []*ring   // of each worker, to the network; none if own
}

// Add shares a port as the next device; own is its address, and roce says that it uses RoCEv2 rather than
// TRP.
func (h *Hub) Add(under port.Port, own netip.Addr, roce bool) *Port {
	p := &Port{under: under, hub: h, info: under.Info(), own: under.Queues() >= h.workers, roce: roce}
	p.info.Siblings = true
	p.Renumber(own)
	if p.info.ReceiveWindow == 0 || p.info.ReceiveWindow > slots {
		p.info.ReceiveWindow = slots
	}
	length, capacity := roomOf(under)
	capacity += wire.EncapLen // for converted frames, see queue.as
	for w := range h.workers {
		q := newQueue(p, w)
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

// Counts has the number of packets that the ports' own queues delivered to a worker.
type Counts struct {
	Received uint64 `counter:"packets_received"`
	HandedOn uint64 `counter:"packets_handed_on"` // packets of those that were copied only to other workers' rings
}

// Counts returns the counters of a worker; any goroutine may call it.
func (h *Hub) Counts(worker int) (c Counts) {
	for _, p := range h.ports {
		c.Received += p.queues[worker].received.Load()
		c.HandedOn += p.queues[worker].handedOn.Load()
	}
	return c
}

// Renumber changes the port's address; any goroutine may call it.
func (p *Port) Renumber(own netip.Addr) { p.addr.Store(&own) }

// roomOf returns the length and the capacity of a port's transmit buffers.
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

// For returns the port as a worker sees it.
func (p *Port) For(worker int) port.Port {
	v := view{p, worker}
	if g, ok := p.under.(port.Grouper); ok && p.own {
		return groupView{v, g}
	}
	return v
}

// groupView is a view of a port with groups, which each queue joins separately.
type groupView struct {
	view
	groups port.Grouper
}

// Join implements port.Grouper.
func (v groupView) Join(_ int, group netip.Addr) (number uint16, err error) {
	return v.groups.Join(v.worker, group)
}

// Leave implements port.Grouper.
func (v groupView) Leave(_ int, number uint16) { v.groups.Leave(v.worker, number) }

// view is a port as one worker sees it: with one queue.
type view struct {
	*Port
	worker int
}

// Queue implements port.Port.
func (v view) Queue(int) port.Queue { return v.queues[v.worker] }

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *Port) Queues() int { return 1 }

// Offloads implements port.Offloader.
func (p *Port) Offloads() string {
	if o, ok := p.under.(port.Offloader); ok {
		return o.Offloads()
	}
	return ""
}

// Link implements port.Port.
func (p *Port) Link() bool { return p.under.Link() }

// Watch implements port.Port.
func (p *Port) Watch(f func(up bool)) { p.under.Watch(f) }

// Stats implements port.Port: it adds the packets that did not fit into rings to the underlying port's
// counters.
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

// Close implements port.Port.
func (p *Port) Close() error { return p.under.Close() }
