// Package loopback is a port without a wire: it accepts every frame and receives none. It is for a daemon
// whose queue pairs all communicate with each other.
package loopback

import (
	"net/netip"

	"urdma/dpdk/port"
)

// Port is a loopback port.
type Port struct {
	info  port.Info
	queue queue
}

type queue struct {
	free     [][]byte
	counters port.Counters
}

// buffers is the number of transmit buffers of a port.
const buffers = 256

var (
	_ port.Port  = (*Port)(nil)
	_ port.Queue = (*queue)(nil)
)

// Open makes a loopback port. A zero MTU means a default; a zero MAC is derived from the port's address,
// because GUIDs are made of it.
func Open(name string, mac [6]byte, mtu int, address netip.Addr) *Port {
	if mtu == 0 {
		mtu = 9000
	}
	if mac == [6]byte{} {
		ip := address.As16()
		mac = [6]byte{0x02, 0x6c, ip[12], ip[13], ip[14], ip[15]}
	}
	p := &Port{info: port.Info{
		Name: name, Driver: "loopback", MAC: mac, MTU: mtu,
		TxUDPChecksum: true,
	}}
	for range buffers {
		p.queue.free = append(p.queue.free, make([]byte, mtu+port.EtherHeaderLen))
	}
	p.queue.counters.LinkUps.Add(1)
	return p
}

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *Port) Queues() int { return 1 }

// Queue implements port.Port.
func (p *Port) Queue(int) port.Queue { return &p.queue }

// Rx implements port.Queue: nothing ever arrives.
func (q *queue) Rx([]port.Packet) int { return 0 }

// Alloc implements port.Queue.
func (q *queue) Alloc(p []port.Packet) int {
	n := min(len(p), len(q.free))
	if n < len(p) {
		q.counters.NoBuffer.Add(1)
	}
	for i := range p[:n] {
		p[i] = port.Packet{Data: q.free[len(q.free)-1]}
		q.free = q.free[:len(q.free)-1]
	}
	return n
}

// Free implements port.Queue.
func (q *queue) Free(p []port.Packet) {
	for i := range p {
		q.free = append(q.free, p[i].Data[:cap(p[i].Data)])
	}
}

// Tx implements port.Queue.
func (q *queue) Tx(p []port.Packet) int {
	for i := range p {
		q.counters.TxBytes.Add(uint64(len(p[i].Data)))
	}
	q.counters.TxPackets.Add(uint64(len(p)))
	q.Free(p)
	return len(p)
}

// Flush implements port.Queue.
func (q *queue) Flush() {}

// ArmRx implements port.Queue: there is never a reason to wake.
func (q *queue) ArmRx() (fd int, armed bool) { return -1, true }

// DisarmRx implements port.Queue.
func (q *queue) DisarmRx() {}

// Link implements port.Port: a loopback is always up.
func (p *Port) Link() bool { return true }

// Watch implements port.Port: nothing ever changes.
func (p *Port) Watch(func(up bool)) {}

// Stats implements port.Port.
func (p *Port) Stats() port.Stats { return p.queue.counters.Snapshot() }

// Close implements port.Port.
func (p *Port) Close() error { return nil }
