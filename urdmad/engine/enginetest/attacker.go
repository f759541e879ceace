package enginetest

import (
	"encoding/binary"
	"math/rand/v2"

	"urdma/dpdk/linked"
	"urdma/dpdk/port"
	"urdma/wire"
)

// Attacker is somebody on the network between the hosts: it hears every frame
// and sends frames to either. It is at work in every turn until its frames are
// used up.
type Attacker struct {
	w     *World
	r     *rand.Rand // its own, so that workloads don't change with it
	kinds []func(*Attacker)
	left  int
	next  int64 // when it sends again, ns

	heard  []heard // the newest frames of the hosts
	total  int     // ever heard
	target target
	Sent   int
}

// heard is a frame on its way from a host.
type heard struct {
	from  *Host
	frame []byte
}

// target holds the UDP ports of the connections to attack; nil is all.
type target map[[2]uint16]bool

// heardMost is how many frames an attacker remembers.
const heardMost = 256

// Listeners of hosts have port numbers from 7000 on; floods go below.
const floodPorts = 6000

// OffPath are the attacks of which no connection may take harm: forgeries that
// guess, true copies, damaged copies, floods.
var OffPath = []func(*Attacker){(*Attacker).forge, (*Attacker).replay, (*Attacker).truncate, (*Attacker).damage,
	(*Attacker).request, (*Attacker).arp, (*Attacker).garbage}

// OnPath are attacks with all that the packets of a connection give away. That
// connection may fail or carry anything.
var OnPath = []func(*Attacker){(*Attacker).lie, (*Attacker).lie, (*Attacker).lie, (*Attacker).replay, (*Attacker).request}

// NewAttacker starts an attack of some frames.
func (w *World) NewAttacker(frames int, kinds []func(*Attacker)) *Attacker {
	a := &Attacker{w: w, r: rand.New(rand.NewPCG(w.opt.Seed, 3)), kinds: kinds, left: frames}
	w.Net.Trace(a.hear)
	w.Intrude = a.intrude
	return a
}

// Begin starts another attack.
func (a *Attacker) Begin(frames int, kinds []func(*Attacker)) { a.left, a.kinds = frames, kinds }

// Aim makes the connections heard so far, and no others, the target.
func (a *Attacker) Aim() {
	a.target = target{}
	for _, h := range a.heard {
		if ports, ok := portsOf(h.frame); ok {
			a.target[ports] = true
		}
	}
}

func portsOf(frame []byte) (p [2]uint16, ok bool) {
	var f wire.Frame
	if f.Parse(frame, len(frame)) != nil || f.Type != wire.EtherTypeIPv4 || f.Proto != wire.ProtoUDP {
		return p, false
	}
	return [2]uint16{f.SrcPort, f.DstPort}, true
}

func (a *Attacker) hear(e linked.Event) {
	if e.What != linked.Sent {
		return
	}
	ports, ok := portsOf(e.Frame)
	if a.target != nil && (!ok || !a.target[ports]) {
		return
	}
	h := heard{from: a.w.A, frame: append([]byte(nil), e.Frame...)}
	if e.From == a.w.B.Name {
		h.from = a.w.B
	}
	if a.w.opt.Plain {
		HideExtension(0, h.frame)
	}
	if a.total++; len(a.heard) < heardMost {
		a.heard = append(a.heard, h)
		return
	}
	a.heard[a.total%heardMost] = h
}

func (a *Attacker) intrude() {
	for a.left > 0 && a.w.Net.Now() >= a.next {
		a.left--
		a.kinds[a.r.IntN(len(a.kinds))](a)
		if a.r.IntN(4) > 0 { // the others come in a burst
			a.next = a.w.Net.Now() + a.r.Int64N(20_000)
		}
	}
}

// send sends a frame as if it came from a host.
func (a *Attacker) send(from *Host, frame []byte) {
	if len(frame) >= port.EtherHeaderLen {
		from.Port.Inject(frame)
		a.Sent++
	}
}

// some is a copy of a frame that was heard.
func (a *Attacker) some() (from *Host, frame []byte) {
	if len(a.heard) == 0 {
		return a.anyHost(), nil
	}
	h := a.heard[a.r.IntN(len(a.heard))]
	return h.from, append([]byte(nil), h.frame...)
}

func (a *Attacker) anyHost() *Host {
	if a.r.IntN(2) == 0 {
		return a.w.A
	}
	return a.w.B
}

func (a *Attacker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.r.Uint32())
	}
	return b
}

// replay sends a frame once more, late.
func (a *Attacker) replay() { a.send(a.some()) }

// truncate cuts a frame and leaves what its headers say.
func (a *Attacker) truncate() {
	from, b := a.some()
	a.send(from, b[:a.r.IntN(len(b)+1)])
}

// damage changes one byte of a datagram behind its checksum, which finds any
// such change.
func (a *Attacker) damage() {
	from, b := a.some()
	if _, ok := portsOf(b); !ok || binary.BigEndian.Uint16(b[40:]) == 0 {
		return
	}
	b[wire.UDPHeaderLen+a.r.IntN(len(b)-wire.UDPHeaderLen)] ^= byte(1 + a.r.IntN(255))
	a.send(from, b)
}

// forge sends a packet with the addresses and ports of a connection and numbers
// that are guessed.
func (a *Attacker) forge() {
	from, b := a.some()
	if _, ok := portsOf(b); !ok {
		return
	}
	t := wire.TRP{PSN: wire.PSN(a.r.Uint32()), Ack: wire.PSN(a.r.Uint32()), Op: wire.TRPOp(a.r.IntN(8)),
		Credits: uint32(a.r.IntN(wire.MaxWideCredits+1) >> a.r.IntN(20)), Flags: wire.FlagAckRequested, Cookie: a.r.Uint32()}
	a.send(from, a.datagram(from, b, a.trp(&t)))
}

// trp is a packet with any body.
func (a *Attacker) trp(t *wire.TRP) []byte {
	b := make([]byte, wire.TRPExtLen+600)
	at := t.Put(b, !a.w.opt.Plain)
	d := wire.DDP{Last: a.r.IntN(2) == 0, Tagged: a.r.IntN(2) == 0, Op: wire.Opcode(a.r.IntN(16)), QN: uint32(a.r.IntN(4)),
		MSN: wire.MSN(a.r.IntN(4)), STag: wire.STag(a.r.Uint32()), TO: a.r.Uint64()}
	at += d.Put(b[at:])
	at += copy(b[at:], a.bytes(a.r.IntN(500)))
	return b[:at]
}

// datagram puts a payload behind the headers of a frame.
func (a *Attacker) datagram(from *Host, like, payload []byte) []byte {
	var f wire.Frame
	if f.Parse(like, len(like)) != nil {
		return nil
	}
	return a.between(from, f.SrcIP, f.SrcPort, f.DstPort, payload)
}

// between builds a datagram to the other host.
func (a *Attacker) between(from *Host, src wire.IPv4, sport, dport uint16, payload []byte) []byte {
	var h wire.UDPHeader
	to := from.Other()
	h.Init(wire.MAC(from.Port.Info().MAC), wire.MAC(to.Port.Info().MAC), src, to.IP, sport, dport)
	b := make([]byte, wire.UDPHeaderLen+len(payload))
	h.Put(b, len(payload), uint16(a.r.Uint32()))
	copy(b[wire.UDPHeaderLen:], payload)
	wire.SetUDPChecksum(b)
	return b
}

// request floods a listener, or a port number without one, with handshakes.
func (a *Attacker) request() {
	from := a.anyHost()
	src := from.IP
	if a.r.IntN(3) > 0 {
		src = a.address()
	}
	b := make([]byte, 600)
	t := wire.TRP{Op: wire.TRPOp(1 + a.r.IntN(3)*a.r.IntN(2)), PSN: wire.PSN(a.r.Uint32()), Ack: wire.PSN(a.r.Uint32())}
	at := t.Put(b, false)
	c := wire.TRPConnect{IRD: uint16(a.r.Uint32()), ORD: uint16(a.r.Uint32()), PrivateData: a.bytes(a.r.IntN(200)), HasExt: a.r.IntN(2) == 0,
		Ext: wire.TRPExtension{Cookie: a.r.Uint32(), QPN: 5, MaxSegment: uint16(a.r.Uint32() >> a.r.IntN(32)), RecvWindow: uint16(a.r.Uint32() >> a.r.IntN(32))}}
	if n, err := c.Put(b[at:]); err == nil {
		a.send(from, a.between(from, src, uint16(a.r.Uint32()), floodPorts+uint16(a.r.IntN(2)), b[:at+n]))
	}
}

// address is one of the hosts' network, of nobody.
func (a *Attacker) address() wire.IPv4 {
	return wire.IPv4{10, 0, 0, byte(3 + a.r.IntN(250))}
}

// arp announces and asks, for addresses that nobody has.
func (a *Attacker) arp() {
	from := a.anyHost()
	to := from.Other()
	b := make([]byte, 64)
	mac := wire.MAC(a.bytes(6))
	at := wire.PutEthernet(b, wire.MAC(to.Port.Info().MAC), mac, wire.EtherTypeARP)
	r := wire.ARP{Op: uint16(a.r.IntN(4)), SenderMAC: mac, SenderIP: a.address(), TargetMAC: wire.MAC(to.Port.Info().MAC), TargetIP: to.IP}
	a.send(from, b[:at+r.Put(b[at:])])
}

// garbage is any bytes behind an Ethernet header, often of a protocol we know.
func (a *Attacker) garbage() {
	from := a.anyHost()
	b := a.bytes(port.EtherHeaderLen + a.r.IntN(1500))
	wire.PutEthernet(b, wire.MAC(from.Other().Port.Info().MAC), wire.MAC(from.Port.Info().MAC),
		[]wire.EtherType{wire.EtherTypeIPv4, wire.EtherTypeARP, 0x86dd}[a.r.IntN(3)])
	if len(b) > port.EtherHeaderLen+20 && a.r.IntN(2) == 0 {
		b[port.EtherHeaderLen] = 0x45
		b[port.EtherHeaderLen+9] = []byte{1, 6, wire.ProtoUDP}[a.r.IntN(3)]
	}
	a.send(from, b)
}

// lie changes what a packet of the target says, cookie and checksum being
// right: acknowledgements of what never was, credits, other numbers, another
// opcode, other bytes.
func (a *Attacker) lie() {
	from, b := a.some()
	ports, ok := portsOf(b)
	if !ok || a.target != nil && !a.target[ports] || len(b) < wire.UDPHeaderLen+wire.TRPLen {
		return
	}
	trp := b[wire.UDPHeaderLen:]
	add := func(at int, n uint32) {
		binary.BigEndian.PutUint32(trp[at:], binary.BigEndian.Uint32(trp[at:])+n)
	}
	for range 1 + a.r.IntN(3) {
		switch a.r.IntN(6) {
		case 0:
			add(0, uint32(a.r.IntN(64))-32)
		case 1:
			add(4, uint32(a.r.IntN(64))-32)
		case 2:
			trp[8], trp[9] = trp[8]&0xf0|byte(a.r.IntN(16)), byte(a.r.Uint32())
		case 3:
			trp[8] = trp[8]&0xf | byte(a.r.IntN(8))<<4
		default:
			trp[a.r.IntN(len(trp))] ^= 1 << a.r.IntN(8)
		}
	}
	wire.SetUDPChecksum(b)
	a.send(from, b)
}
