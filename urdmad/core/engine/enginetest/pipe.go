package enginetest

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// Pipe is a port for benchmarks, and its own queue. Two pipes pass frames through rings of fixed
// buffers, with one copy per frame and without clock, faults or allocation.
type Pipe struct {
	info port.Info
	rx   *pipeRing
	tx   *pipeRing
	free [][]byte
	// From is the source of packets received here, on a datagram pipe.
	From port.Peer
	// To is the address of the other end's socket as seen from here. Packets to other addresses
	// are lost.
	To port.Peer

	// Pass is the length of the longest datagram that passes from here with don't-fragment set; 0
	// means any. Longer datagrams pass if they may be fragmented; others are lost without notice.
	Pass int
	// Refuse makes the other end reject encapsulation types from this one on; 0: none.
	Refuse byte
	// Lost and Fragmented count the effects of Pass.
	Lost, Fragmented int
	// FirstOnly loses all but the first of datagrams sent together, as some faulty kernels do.
	FirstOnly bool
	// Padded is the number of packets sent with padding.
	Padded int
	// Sent is the number of packets sent from here.
	Sent int

	injected []byte
	injector port.Peer
}

// pipeRing carries frames one way.
type pipeRing struct {
	frames     [][]byte
	lengths    []int
	head, tail int
}

const pipeDepth = 1024

var (
	_ port.Port  = (*Pipe)(nil)
	_ port.Queue = (*Pipe)(nil)
)

// NewDatagramPipes returns two joined ports that stand for sockets of hosts a and b.
func NewDatagramPipes(mtu int, a, b netip.Addr) (x, y *Pipe) {
	x, y = NewPipes(mtu)
	x.info.Datagrams, y.info.Datagrams = true, true
	x.info.Batches, y.info.Batches = true, true
	x.From, x.To = port.PeerOf(netip.AddrPortFrom(b, SocketPort)), port.PeerOf(netip.AddrPortFrom(b, SocketPort))
	y.From, y.To = port.PeerOf(netip.AddrPortFrom(a, SocketPort)), port.PeerOf(netip.AddrPortFrom(a, SocketPort))
	return x, y
}

// SocketPort is the UDP port number of the sockets of datagram pipes.
const SocketPort = 30035

// NewPipes returns two joined ports.
func NewPipes(mtu int) (a, b *Pipe) {
	if mtu == 0 {
		mtu = 1500
	}
	ab, ba := newPipeRing(mtu), newPipeRing(mtu)
	return newPipe(mtu, 0xa, ba, ab), newPipe(mtu, 0xb, ab, ba)
}

func newPipeRing(mtu int) *pipeRing {
	r := &pipeRing{frames: make([][]byte, pipeDepth), lengths: make([]int, pipeDepth)}
	for i := range r.frames {
		r.frames[i] = make([]byte, mtu+port.EtherHeaderLen)
	}
	return r
}

func newPipe(mtu int, mac byte, rx, tx *pipeRing) *Pipe {
	p := &Pipe{rx: rx, tx: tx, info: port.Info{Name: "pipe", Driver: "pipe", MTU: mtu, Wire: true,
		MAC: [6]byte{2, 0, 0, 0, 0, mac}, TxUDPChecksum: true}}
	for range 64 {
		p.free = append(p.free, make([]byte, mtu+port.EtherHeaderLen))
	}
	return p
}

// Info implements port.Port; the methods below implement port.Port or port.Queue.
func (p *Pipe) Info() port.Info { return p.info }

// Queues is 1.
func (p *Pipe) Queues() int { return 1 }

// Queue is the port itself.
func (p *Pipe) Queue(int) port.Queue { return p }

// Rx lends the ring's own buffers until Free.
func (p *Pipe) Rx(out []port.Packet) int {
	n := p.takeInjected(out)
	for ; n < len(out) && p.rx.head != p.rx.tail; n++ {
		i := p.rx.head % pipeDepth
		out[n] = port.Packet{Data: p.rx.frames[i][:p.rx.lengths[i]], Flags: port.RxIPv4Good | port.RxUDPGood, Peer: p.From}
		p.rx.head++
	}
	return n
}

// Last returns the packet received last.
func (p *Pipe) Last() []byte {
	i := (p.rx.head - 1) % pipeDepth
	return p.rx.frames[i][:p.rx.lengths[i]]
}

// Inject makes a packet arrive from a peer other than From.
func (p *Pipe) Inject(data []byte, from port.Peer) { p.injected, p.injector = data, from }

// takeInjected is the injected packet, if there is one.
func (p *Pipe) takeInjected(out []port.Packet) int {
	if p.injected == nil || len(out) == 0 {
		return 0
	}
	out[0] = port.Packet{Data: p.injected, Peer: p.injector}
	p.injected = nil
	return 1
}

// Free does nothing: a slot is used again only pipeDepth frames later.
func (p *Pipe) Free([]port.Packet) {}

// Alloc lends transmit buffers.
func (p *Pipe) Alloc(out []port.Packet) int {
	n := min(len(out), len(p.free))
	for i := range out[:n] {
		out[i] = port.Packet{Data: p.free[len(p.free)-1]}
		p.free = p.free[:len(p.free)-1]
	}
	return n
}

// Tx copies frames into the ring.
func (p *Pipe) Tx(in []port.Packet) int {
	for i := range in {
		if p.tx.tail-p.tx.head > pipeDepth/2 {
			return i
		}
		p.Sent++
		at := p.tx.tail % pipeDepth
		if !p.info.Datagrams || in[i].Peer == p.To && p.passes(&in[i]) && !p.spoils(in[i].Flags, i) {
			p.tx.lengths[at] = copy(p.tx.frames[at], in[i].Data)
			p.tx.tail++
		}
		p.free = append(p.free, in[i].Data[:cap(in[i].Data)])
	}
	return len(in)
}

// passes does to a datagram what the path does.
func (p *Pipe) passes(k *port.Packet) bool {
	if k.Data[3] == byte(wire.EncapPadded) {
		p.Padded++
	}
	if p.Refuse > 0 && k.Data[3] >= p.Refuse {
		return false
	}
	if p.Pass == 0 || len(k.Data) <= p.Pass {
		return true
	}
	if k.Flags.Has(port.TxFragment) {
		p.Fragmented++
		return true
	}
	p.Lost++
	return false
}

// spoils reports whether datagram number n of a burst is lost because it leaves
// with others.
func (p *Pipe) spoils(how port.Flags, n int) bool {
	return p.FirstOnly && n > 0 && !how.Has(port.TxAlone)
}

// Flush does nothing.
func (p *Pipe) Flush() {}

// ArmRx reports whether nothing waits; a pipe has no interrupt.
func (p *Pipe) ArmRx() (fd int, armed bool) { return -1, p.rx.head == p.rx.tail }

// DisarmRx does nothing.
func (p *Pipe) DisarmRx() {}

// Link is always up.
func (p *Pipe) Link() bool { return true }

// Watch has nothing to tell.
func (p *Pipe) Watch(func(up bool)) {}

// Stats counts nothing.
func (p *Pipe) Stats() port.Stats { return port.Stats{} }

// Close does nothing.
func (p *Pipe) Close() error { return nil }
