package linked

import (
	"urdma/dpdk/port"
)

// Loopback is a port without a wire: it takes every frame and receives none.
// It serves a daemon whose queue pairs all talk to each other.
type Loopback struct {
	info     port.Info
	free     [][]byte
	counters port.Counters
}

// loopbackBuffers is how many transmit buffers a loopback port has.
const loopbackBuffers = 256

var _ port.Port = (*Loopback)(nil)

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
		l.free = append(l.free, make([]byte, mtu+port.EtherHeaderLen))
	}
	l.counters.LinkUps.Add(1)
	return l
}

// Info implements port.Port.
func (l *Loopback) Info() port.Info { return l.info }

// Rx implements port.Port: nothing ever arrives.
func (l *Loopback) Rx([]port.Packet) int { return 0 }

// Alloc implements port.Port.
func (l *Loopback) Alloc(p []port.Packet) int {
	n := min(len(p), len(l.free))
	if n < len(p) {
		l.counters.NoBuffer.Add(1)
	}
	for i := range p[:n] {
		p[i] = port.Packet{Data: l.free[len(l.free)-1]}
		l.free = l.free[:len(l.free)-1]
	}
	return n
}

// Free implements port.Port.
func (l *Loopback) Free(p []port.Packet) {
	for i := range p {
		l.free = append(l.free, p[i].Data[:cap(p[i].Data)])
	}
}

// Tx implements port.Port.
func (l *Loopback) Tx(p []port.Packet) int {
	for i := range p {
		l.counters.TxBytes.Add(uint64(len(p[i].Data)))
	}
	l.counters.TxPackets.Add(uint64(len(p)))
	l.Free(p)
	return len(p)
}

// Retain implements port.Port.
func (l *Loopback) Retain(*port.Packet) error { return nil }

// Flush implements port.Port.
func (l *Loopback) Flush() {}

// ArmRx implements port.Port: there is never a reason to wake.
func (l *Loopback) ArmRx() (fd int, armed bool) { return -1, true }

// DisarmRx implements port.Port.
func (l *Loopback) DisarmRx() {}

// Link implements port.Port: a loopback is always up.
func (l *Loopback) Link() bool { return true }

// Stats implements port.Port.
func (l *Loopback) Stats() port.Stats { return l.counters.Snapshot() }

// Close implements port.Port.
func (l *Loopback) Close() error { return nil }
