package linked

import (
	"fmt"

	"urdma/dpdk/port"
)

// Options describe one test port. A zero value means the default in the comment.
type Options struct {
	Name string
	MAC  [6]byte
	MTU  int // 1500

	RxRing  int // frames waiting for Rx: 512
	TxRing  int // frames passed to Tx and not yet sent: 512
	Buffers int // buffers in all: 8192
	// ReceiveWindow is the port's (port.Info); 0: unlimited
	ReceiveWindow int

	// Checksum makes the port compute UDP checksums on transmit and verify IPv4
	// and UDP checksums on receive, and set the flags.
	Checksum bool

	// Misuse is called for a buffer that is used against the rules of package port. nil panics, so that the test
	// fails.
	Misuse func(what string)
}

func (o *Options) fill() {
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.RxRing == 0 {
		o.RxRing = 512
	}
	if o.TxRing == 0 {
		o.TxRing = 512
	}
	if o.Buffers == 0 {
		o.Buffers = 8192
	}
	if o.Misuse == nil {
		o.Misuse = func(what string) { panic("linked: " + what) }
	}
}

// Port is one end of a linked pair.
type Port struct {
	net  *Network
	opt  Options
	info port.Info
	out  *wire

	queue  queue
	closed bool
	link   port.LinkState
}

// queue is the only queue of a port.
type queue struct {
	port *Port
	pool pool

	rx      []arrival // frames waiting for Rx, oldest first
	txq     []uint32  // buffers taken by Tx, not flushed
	flying  int       // buffers flushed, still being transmitted
	allocNo uint64    // number of the last allocation
	sentNo  uint64    // number of the last packet passed to Tx

	counters port.Counters
}

type arrival struct {
	buf   uint32
	size  int
	flags port.Flags
}

var (
	_ port.Port  = (*Port)(nil)
	_ port.Queue = (*queue)(nil)
)

// Pair joins two new ports: ab is the wire from a to b, ba the wire back.
func (n *Network) Pair(a, b Options, ab, ba Path) (*Port, *Port) {
	pa, pb := n.newPort(a, "a", 0xa), n.newPort(b, "b", 0xb)
	pa.out = &wire{net: n, path: ab, from: pa, to: pb, up: true}
	pb.out = &wire{net: n, path: ba, from: pb, to: pa, up: true}
	return pa, pb
}

func (n *Network) newPort(o Options, name string, mac byte) *Port {
	o.fill()
	if o.Name == "" {
		o.Name = name
	}
	if o.MAC == [6]byte{} {
		o.MAC = [6]byte{0x02, 0, 0, 0, 0, mac}
	}
	p := &Port{net: n, opt: o}
	p.info = port.Info{
		Name: o.Name, Driver: "linked", MAC: o.MAC, MTU: o.MTU,
		TxUDPChecksum: o.Checksum, Wire: true, ReceiveWindow: o.ReceiveWindow,
	}
	p.queue.port = p
	p.queue.pool = newPool(o.Buffers, o.MTU+port.EtherHeaderLen, o.Misuse)
	p.link.Set(true)
	return p
}

// SetPath changes the faults of the wire that leaves this port. Frames under way keep their fate.
func (p *Port) SetPath(path Path) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.out.path = path
}

// SetLink connects or disconnects the cable. This affects both directions, including frames under way.
func (p *Port) SetLink(up bool) {
	for _, end := range []*Port{p, p.out.to} {
		p.net.mu.Lock()
		end.out.up = up
		p.net.mu.Unlock()
		end.link.Set(up)
	}
}

// Inject puts a frame on the wire that leaves this port, as another host on the network would: no buffer or ring of
// the port is used. Delay, reordering and corruption of the path apply, Drop and Loss don't.
func (p *Port) Inject(frame []byte) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.out.deliver(frame, p.net.now)
}

// Outstanding returns the number of buffers that the caller owns: 0 at the end of a test that keeps none.
func (p *Port) Outstanding() int {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	return p.queue.pool.count(ownedRx) + p.queue.pool.count(ownedTx)
}

// Info implements port.Port.
func (p *Port) Info() port.Info { return p.info }

// Queues implements port.Port.
func (p *Port) Queues() int { return 1 }

// Queue implements port.Port.
func (p *Port) Queue(int) port.Queue { return &p.queue }

// Stats implements port.Port.
func (p *Port) Stats() port.Stats { return p.link.Stats().Add(p.queue.counters.Snapshot()) }

// Link implements port.Port.
func (p *Port) Link() bool { return p.link.Up() }

// Watch implements port.Port.
func (p *Port) Watch(f func(up bool)) { p.link.Watch(f) }

// Close implements port.Port. Frames still queued are lost.
func (p *Port) Close() error {
	p.net.mu.Lock()
	p.closed = true
	p.queue.rx, p.queue.txq = nil, nil
	p.net.mu.Unlock()
	p.link.Close()
	return nil
}

// String names the port in test output.
func (p *Port) String() string { return fmt.Sprintf("linked %s", p.info.Name) }
