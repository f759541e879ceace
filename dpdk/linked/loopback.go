package linked

import (
	"urdma/dpdk/port"
)

// Loopback is a port without a wire: it takes every frame and receives none.
// It serves a daemon whose queue pairs all talk to each other.
type Loopback struct {
	info  port.Info
	queue loopbackQueue
}

type loopbackQueue struct {
	free     [][]byte
	counters port.Counters
}

// loopbackBuffers is how many transmit buffers a loopback port has.
const loopbackBuffers = 256

var (
	_ port.Port  = (*Loopback)(nil)
	_ port.Queue = (*loopbackQueue)(nil)
)

// OpenLoopback makes a loopback port. A zero MAC or MTU takes a default.
func OpenLoopback(name string, mac [6]byte, mtu int) *Loopback {
	if mtu == 0 {
		mtu = 9000
	}
	if mac == [6]byte{} {
		mac = [6]byte{0x02, 0, 0, 0, 0, 1}
	}
	l := &Loopback{info: port.Info{
		Name: name, Driver: "loopback", MAC: mac, MTU: mtu,
		RxChecksum: true, TxUDPChecksum: true,
	}}
	for range loopbackBuffers {
		l.queue.free = append(l.queue.free, make([]byte, mtu+port.EtherHeaderLen))
	}
	l.queue.counters.LinkUps.Add(1)
	return l
}

// Info implements port.Port.
func (l *Loopback) Info() port.Info { return l.info }

// Queues implements port.Port.
func (l *Loopback) Queues() int { return 1 }

// Queue implements port.Port.
func (l *Loopback) Queue(int) port.Queue { return &l.queue }

// Rx implements port.Queue: nothing ever arrives.
func (q *loopbackQueue) Rx([]port.Packet) int { return 0 }

// Alloc implements port.Queue.
func (q *loopbackQueue) Alloc(p []port.Packet) int {
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
func (q *loopbackQueue) Free(p []port.Packet) {
	for i := range p {
		q.free = append(q.free, p[i].Data[:cap(p[i].Data)])
	}
}

// Tx implements port.Queue.
func (q *loopbackQueue) Tx(p []port.Packet) int {
	for i := range p {
		q.counters.TxBytes.Add(uint64(len(p[i].Data)))
	}
	q.counters.TxPackets.Add(uint64(len(p)))
	q.Free(p)
	return len(p)
}

// Retainable implements port.Queue: nothing arrives.
func (q *loopbackQueue) Retainable() int { return 0 }

// Retain implements port.Queue.
func (q *loopbackQueue) Retain(*port.Packet) error { return port.ErrNoBuffer }

// Flush implements port.Queue.
func (q *loopbackQueue) Flush() {}

// ArmRx implements port.Queue: there is never a reason to wake.
func (q *loopbackQueue) ArmRx() (fd int, armed bool) { return -1, true }

// DisarmRx implements port.Queue.
func (q *loopbackQueue) DisarmRx() {}

// Link implements port.Port: a loopback is always up.
func (l *Loopback) Link() bool { return true }

// Watch implements port.Port: nothing ever changes.
func (l *Loopback) Watch(func(up bool)) {}

// Stats implements port.Port.
func (l *Loopback) Stats() port.Stats { return l.queue.counters.Snapshot() }

// Close implements port.Port.
func (l *Loopback) Close() error { return nil }
