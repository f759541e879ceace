package enginetest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/wire"
)

// Attacker is an attacker on the network between the hosts: it sees every frame and sends frames
// to both hosts. It acts in every turn until it has sent its number of frames.
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

// heardMost is the number of frames that an attacker remembers.
const heardMost = 256

// Listeners of hosts have port numbers from 7000 on; floods go below.
const floodPorts = 6000

// OffPath are attacks that must not harm any connection: forgeries with guessed numbers, exact
// copies, damaged copies, floods.
var OffPath = []func(*Attacker){(*Attacker).forge, (*Attacker).replay, (*Attacker).truncate, (*Attacker).damage,
	(*Attacker).request, (*Attacker).neighbour, (*Attacker).garbage}

// OnPath are attacks that use everything visible in a connection's packets. The attacked
// connection may fail or carry wrong data.
var OnPath = []func(*Attacker){(*Attacker).lie, (*Attacker).lie, (*Attacker).lie, (*Attacker).terminate,
	(*Attacker).replay, (*Attacker).request}

// NewAttacker starts an attack with a number of frames.
func (w *World) NewAttacker(frames int, kinds []func(*Attacker)) *Attacker {
	a := &Attacker{w: w, r: rand.New(rand.NewPCG(w.opt.Seed, 3)), kinds: kinds, left: frames}
	w.Net.Trace(a.hear)
	w.Intrude = a.intrude
	return a
}

// Begin starts another attack.
func (a *Attacker) Begin(frames int, kinds []func(*Attacker)) { a.left, a.kinds = frames, kinds }

// Aim limits the attack to the connections seen so far.
func (a *Attacker) Aim() {
	a.target = target{}
	for _, h := range a.heard {
		if ports, ok := portsOf(h.frame); ok {
			a.target[ports] = true
		}
	}
}

func portsOf(frame []byte) (p [2]uint16, ok bool) {
	f, ok := parsed(frame)
	return [2]uint16{f.SrcPort, f.DstPort}, ok
}

// parsed is a frame with a datagram.
func parsed(frame []byte) (f wire.Frame, ok bool) {
	ok = f.Parse(frame, len(frame)) == nil && f.Proto == wire.ProtoUDP
	return f, ok
}

func setChecksum(f *wire.Frame, frame []byte) {
	if f.Type == wire.EtherTypeIPv6 {
		wire.SetUDP6Checksum(frame)
		return
	}
	wire.SetUDPChecksum(frame)
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

// some returns a copy of a frame that was seen.
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
	f, ok := parsed(b)
	if !ok || f.UDPChecksum == 0 {
		return
	}
	b[f.PayloadOff+a.r.IntN(len(b)-f.PayloadOff)] ^= byte(1 + a.r.IntN(255))
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
	at := t.Put(b)
	d := wire.DDP{Last: a.r.IntN(2) == 0, Tagged: a.r.IntN(2) == 0, Op: wire.Opcode(a.r.IntN(16)), QN: uint32(a.r.IntN(4)),
		MSN: wire.MSN(a.r.IntN(4)), STag: wire.STag(a.r.Uint32()), TO: a.r.Uint64()}
	at += d.Put(b[at:])
	at += copy(b[at:], a.bytes(a.r.IntN(500)))
	return b[:at]
}

// datagram puts a payload behind the headers of a frame.
func (a *Attacker) datagram(from *Host, like, payload []byte) []byte {
	f, ok := parsed(like)
	if !ok {
		return nil
	}
	src, _ := f.Addrs()
	return a.between(from, src.Addr(), f.SrcPort, f.DstPort, payload)
}

// between builds a datagram to the other host.
func (a *Attacker) between(from *Host, src netip.Addr, sport, dport uint16, payload []byte) []byte {
	to := from.Other()
	if src.Is6() {
		var h wire.UDP6Header
		h.Init(wire.MAC(from.Port.Info().MAC), wire.MAC(to.Port.Info().MAC), src.As16(), to.Addr.As16(), sport, dport)
		b := make([]byte, wire.UDP6HeaderLen+len(payload))
		h.Put(b, len(payload))
		copy(b[wire.UDP6HeaderLen:], payload)
		wire.SetUDP6Checksum(b)
		return b
	}
	var h wire.UDPHeader
	h.Init(wire.MAC(from.Port.Info().MAC), wire.MAC(to.Port.Info().MAC), src.As4(), to.IP, sport, dport)
	b := make([]byte, wire.UDPHeaderLen+len(payload))
	h.Put(b, len(payload), uint16(a.r.Uint32()))
	copy(b[wire.UDPHeaderLen:], payload)
	wire.SetUDPChecksum(b)
	return b
}

// request floods a listener, or a port number without one, with handshakes.
func (a *Attacker) request() {
	from := a.anyHost()
	src := from.Addr
	if a.r.IntN(3) > 0 {
		src = a.address()
	}
	b := make([]byte, 600)
	t := wire.TRP{Op: wire.TRPOp(1 + a.r.IntN(3)*a.r.IntN(2)), PSN: wire.PSN(a.r.Uint32()), Ack: wire.PSN(a.r.Uint32())}
	at := t.Put(b)
	c := wire.TRPConnect{IRD: uint16(a.r.Uint32()), ORD: uint16(a.r.Uint32()), PrivateData: a.bytes(a.r.IntN(200)),
		HasExt: a.r.IntN(2) == 0,
		Ext: wire.TRPExtension{Cookie: a.r.Uint32(), QPN: 5, MaxSegment: uint16(a.r.Uint32() >> a.r.IntN(32)),
			RecvWindow: uint16(a.r.Uint32() >> a.r.IntN(32))}}
	if n, err := c.Put(b[at:]); err == nil {
		a.send(from, a.between(from, src, uint16(a.r.Uint32()), floodPorts+uint16(a.r.IntN(2)), b[:at+n]))
	}
}

// address is one of the hosts' network, of nobody.
func (a *Attacker) address() netip.Addr {
	host := byte(3 + a.r.IntN(250))
	if a.w.opt.IPv6 {
		ip := a.w.A.Addr.As16()
		ip[15] = host
		return netip.AddrFrom16(ip)
	}
	return netip.AddrFrom4([4]byte{10, 0, 0, host})
}

// neighbour announces and asks, for addresses that nobody has.
func (a *Attacker) neighbour() {
	if a.w.opt.IPv6 {
		a.ndp()
	} else {
		a.arp()
	}
}

func (a *Attacker) ndp() {
	from := a.anyHost()
	to := from.Other()
	b := make([]byte, wire.NDPFrameLen)
	mac := wire.MAC(a.bytes(6))
	n := wire.NDP{Type: wire.ICMPv6Solicit + uint8(a.r.IntN(2)), Router: a.r.IntN(2) == 0, Solicited: a.r.IntN(2) == 0,
		Override: a.r.IntN(2) == 0, Target: a.address().As16(), MAC: mac, HasMAC: a.r.IntN(4) > 0}
	dst := to.Addr.As16()
	if a.r.IntN(2) == 0 {
		dst = wire.AllNodes
	}
	a.send(from, b[:n.Put(b, mac, wire.MAC(to.Port.Info().MAC), a.address().As16(), dst)])
}

func (a *Attacker) arp() {
	from := a.anyHost()
	to := from.Other()
	b := make([]byte, 64)
	mac := wire.MAC(a.bytes(6))
	at := wire.PutEthernet(b, wire.MAC(to.Port.Info().MAC), mac, wire.EtherTypeARP)
	r := wire.ARP{Op: uint16(a.r.IntN(4)), SenderMAC: mac, SenderIP: a.address().As4(),
		TargetMAC: wire.MAC(to.Port.Info().MAC), TargetIP: to.IP}
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

// lie changes fields of a packet of the target and keeps cookie and checksum valid:
// acknowledgements of data never sent, credits, other numbers, another opcode, other bytes.
func (a *Attacker) lie() {
	from, b := a.some()
	f, ok := parsed(b)
	if !ok || a.target != nil && !a.target[[2]uint16{f.SrcPort, f.DstPort}] || f.PayloadLen < wire.TRPLen {
		return
	}
	trp := b[f.PayloadOff:]
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
	setChecksum(&f, b)
	a.send(from, b)
}

// terminate continues a packet of the target with a Terminate, for a segment of any
// header or for none.
func (a *Attacker) terminate() {
	from, b := a.some()
	f, ok := parsed(b)
	if !ok || a.target != nil && !a.target[[2]uint16{f.SrcPort, f.DstPort}] {
		return
	}
	var t wire.TRP
	if _, err := t.Parse(b[f.PayloadOff : f.PayloadOff+f.PayloadLen]); err != nil {
		return
	}
	t.Op, t.PSN = wire.OpData, t.PSN.Add(uint32(a.r.IntN(256)))
	out := make([]byte, wire.TRPExtLen+wire.UntaggedLen+wire.MaxTerminateLen)
	at := t.Put(out)
	d := wire.DDP{Last: true, Op: wire.OpTerminate, QN: wire.QueueTerminate, MSN: 1}
	at += d.Put(out[at:])
	term := wire.Terminate{Code: wire.TermUntaggedNoBuffer}
	if a.r.IntN(2) == 0 {
		refused := wire.DDP{Last: true, Tagged: a.r.IntN(2) == 0, Op: wire.Opcode(a.r.IntN(12)), MSN: wire.MSN(a.r.IntN(4)),
			STag: wire.STag(a.r.Uint32())}
		header := make([]byte, wire.UntaggedLen)
		term.DDPHeader = header[:refused.Put(header)]
		term.HasDDPLen, term.SegmentLen = true, uint16(len(term.DDPHeader))
	}
	a.send(from, a.datagram(from, b, out[:at+term.Put(out[at:])]))
}
