package porttest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/dpdk/port"
)

// Pair has two ports under test, connected by a wire without loss.
type Pair struct {
	A, B port.Port // may be the same port, if it receives what it sends
	// Step lets time pass on the wire: it advances a virtual clock, or waits a moment. It is called whenever
	// the suite waits for frames.
	Step func()
	// Foreign: other frames than the suite's may arrive (a kernel's neighbour discovery); they are ignored.
	Foreign bool
	// Interrupts: ArmRx returns a real fd.
	Interrupts bool
	Lossy      bool // frames may be lost if the receiver is full (no back-pressure)
	// PeerA and PeerB are the sockets of A and B, on ports of datagrams; the suite's frames are then the
	// payload.
	PeerA, PeerB port.Peer
}

// Seed is the seed of all random choices in the suite.
const Seed = 0x9e3779b97f4a7c15

// etherType is "local experimental" (IEEE 802): no stack answers it.
const etherType = 0x88b5

const frameHeader = port.EtherHeaderLen + 8 + 2 // sequence number, length

// patience is how long the suite waits for frames.
const patience = time.Minute

// build fills b with frame number seq: addresses, sequence number, length, and bytes derived from both.
func build(b []byte, src, dst [6]byte, seq uint64) {
	copy(b[0:], dst[:])
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], etherType)
	binary.BigEndian.PutUint64(b[14:], seq)
	binary.BigEndian.PutUint16(b[22:], uint16(len(b)))
	fill(b[frameHeader:], seq)
}

func fill(b []byte, seq uint64) {
	x := seq*Seed + 1
	for i := range b {
		b[i] = byte(x >> 56)
		x = x*6364136223846793005 + 1442695040888963407
	}
}

// parse checks a received frame byte for byte and returns its number; ours is false for a frame that the
// suite did not send.
func parse(t *testing.T, b []byte) (seq uint64, ours bool) {
	t.Helper()
	if len(b) < frameHeader || binary.BigEndian.Uint16(b[12:]) != etherType {
		return 0, false
	}
	seq = binary.BigEndian.Uint64(b[14:])
	n := int(binary.BigEndian.Uint16(b[22:]))
	if n > len(b) || n < frameHeader {
		t.Fatalf("frame %d: says it has %d bytes, arrived with %d", seq, n, len(b))
	}
	want := make([]byte, n-frameHeader)
	fill(want, seq)
	for i, c := range b[frameHeader:n] {
		if c != want[i] {
			t.Fatalf("frame %d of %d bytes: byte %d is %#02x, sent %#02x", seq, n, frameHeader+i, c, want[i])
		}
	}
	return seq, true
}

// flow sends numbered frames in one direction and checks the received ones.
type flow struct {
	t        *testing.T
	p        *Pair
	from, to port.Port
	tx, rx   port.Queue
	sent     uint64
	next     uint64 // number expected next
	most     int    // bytes of the longest frame, if shorter than the port's
	rng      *rand.Rand
}

func newFlow(t *testing.T, p *Pair, from, to port.Port) *flow {
	return &flow{t: t, p: p, from: from, to: to, tx: from.Queue(0), rx: to.Queue(0), rng: rand.New(rand.NewPCG(Seed, 1))}
}

// room returns the length of a port's buffers.
func (p *Pair) room(of port.Port) int {
	i := of.Info()
	switch {
	case i.Datagrams && p.PeerA.Addr().Is4():
		return i.MTU - udpOverIPv4
	case i.Datagrams:
		return i.MTU - udpOverIPv6
	}
	return i.MTU + port.EtherHeaderLen
}

// The lengths of the two headers.
const (
	udpOverIPv4 = 28
	udpOverIPv6 = 48
)

// peer returns the socket of the port to which frames are sent.
func (p *Pair) peer(to port.Port) port.Peer {
	if to == p.A {
		return p.PeerA
	}
	return p.PeerB
}

func (f *flow) size() int {
	room := f.p.room(f.from)
	if f.most > 0 {
		room = f.most
	}
	switch f.rng.IntN(4) {
	case 0:
		return room
	case 1:
		return 60
	}
	return 60 + f.rng.IntN(room-60+1)
}

// send sends one burst of up to n frames, retrying until the port has accepted everything that it allocated,
// and returns their number.
func (f *flow) send(n int) int {
	f.t.Helper()
	pk := make([]port.Packet, n)
	n = f.tx.Alloc(pk)
	f.transmit(pk[:n])
	return n
}

func (f *flow) transmit(pk []port.Packet) {
	f.t.Helper()
	for i := range pk {
		pk[i].Data, pk[i].Peer = pk[i].Data[:f.size()], f.p.peer(f.to)
		build(pk[i].Data, f.from.Info().MAC, f.to.Info().MAC, f.sent)
		f.sent++
	}
	f.push(pk)
}

// push calls Tx with built frames until all are accepted.
func (f *flow) push(pk []port.Packet) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for len(pk) > 0 {
		n := f.tx.Tx(pk)
		f.tx.Flush()
		pk = pk[n:]
		if n == 0 {
			f.p.Step()
			f.drain()
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("Tx took nothing more; %d frames left, stats %+v", len(pk), f.from.Stats())
		}
	}
}

// receive receives what has arrived, checks contents and order, and returns the packets without freeing them.
func (f *flow) receive(max int) []port.Packet {
	f.t.Helper()
	pk := make([]port.Packet, max)
	n := f.rx.Rx(pk)
	if n > max {
		f.t.Fatalf("Rx(%d) returned %d", max, n)
	}
	kept := pk[:0]
	for i := range pk[:n] {
		seq, ours := parse(f.t, pk[i].Data)
		if !ours {
			if !f.p.Foreign {
				f.t.Fatalf("a frame nobody sent: % x", pk[i].Data)
			}
			f.rx.Free(pk[i : i+1])
			continue
		}
		if seq != f.next {
			f.t.Fatalf("frame %d arrived, expected %d", seq, f.next)
		}
		f.next++
		kept = append(kept, pk[i])
	}
	return kept
}

// drain receives what has arrived and frees it in random order.
func (f *flow) drain() {
	f.t.Helper()
	for {
		pk := f.receive(32)
		if len(pk) == 0 {
			return
		}
		f.freeShuffled(pk)
	}
}

func (f *flow) freeShuffled(pk []port.Packet) {
	f.rng.Shuffle(len(pk), func(i, j int) { pk[i], pk[j] = pk[j], pk[i] })
	f.rx.Free(pk)
}

// settle waits until everything sent has arrived.
func (f *flow) settle() {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for f.next < f.sent {
		f.drain()
		if f.next < f.sent {
			f.p.Step()
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d of %d frames arrived; sender %+v receiver %+v", f.next, f.sent, f.from.Stats(), f.to.Stats())
		}
	}
}

// Exchange sends count frames in each direction and checks that each arrives unchanged and in order.
func Exchange(t *testing.T, p *Pair, count int) {
	t.Helper()
	p.takeAll(t)
	for _, f := range []*flow{newFlow(t, p, p.A, p.B), newFlow(t, p, p.B, p.A)} {
		for f.sent < uint64(count) {
			f.send(1 + f.rng.IntN(16))
			f.settle()
		}
	}
}

// takeAll discards what has arrived so far.
func (p *Pair) takeAll(t *testing.T) {
	t.Helper()
	p.Step()
	for _, end := range []port.Port{p.A, p.B} {
		var pk [32]port.Packet
		for n := 1; n > 0; {
			n = end.Queue(0).Rx(pk[:])
			end.Queue(0).Free(pk[:n])
		}
	}
}

// Echo sends count frames through a port whose peer sends everything back, and checks that each returns
// unchanged and in order.
func Echo(t *testing.T, p port.Port, count int, step func()) {
	t.Helper()
	f := newFlow(t, &Pair{A: p, B: p, Step: step}, p, p)
	for f.sent < uint64(count) {
		f.send(1 + f.rng.IntN(16))
		f.drain()
		for f.sent-f.next > 16 {
			f.settle()
		}
	}
	f.settle()
}
