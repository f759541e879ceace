package hostile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"time"

	"urdma/wire"
)

// attackerEnv makes this program a hostile host: seed, kind of wire and its arguments (see newEnd), the victim's
// address, its own, and the port number of a listener to flood.
const attackerEnv = "URDMA_TEST_ATTACKER"

// end is a hostile host's position on a wire.
type end interface {
	// hear returns the next received frame, nil if there is none.
	hear() []byte
	send(frame []byte)
	// spoil makes the attack that only this kind of wire allows; false if there is none.
	spoil(r *rand.Rand) bool
}

// attacker replays, damages, truncates and reorders received packets, forges numbers that it can't know, and floods.
// It uses a connection's cookie (forge) only if lies is set, which means that the connections that it receives belong
// to its own victims, or if its packet has a wrong checksum (corrupt).
type attacker struct {
	end
	r            *rand.Rand
	victim, self netip.Addr
	victimMAC    wire.MAC
	mac          wire.MAC
	flood        uint16
	lies         bool
	heard        [][]byte
	total        int
	sent         int
	corrupted    int // of these, those from corrupt
}

const heardMost = 400

// runAttacker is the process; it attacks until it is killed.
func runAttacker(args []string) {
	seed, _ := strconv.ParseUint(args[0], 10, 64)
	flood, _ := strconv.ParseUint(args[len(args)-1], 10, 16)
	a := &attacker{r: rand.New(rand.NewPCG(seed, 11)), flood: uint16(flood), mac: wire.MAC{2, 0, 0, 0, 0, 9},
		victimMAC: wire.MAC{255, 255, 255, 255, 255, 255}}
	var err error
	if a.end, err = newEnd(args[1], args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	a.lies = args[1] != "packet" && args[1] != "roce"
	a.victim, a.self = netip.MustParseAddr(args[3]), netip.MustParseAddr(args[4])
	kinds := []func(){a.replay, a.backwards, a.truncate, a.damage, a.forge, a.request, a.neighbour, a.garbage, a.corrupt}
	if args[1] == "roce" {
		kinds = []func(){a.replay, a.backwards, a.truncate, a.damage, a.forgeRoCE, a.askRoCE, a.neighbour, a.garbage,
			a.corruptRoCE}
	}
	for said := time.Now(); ; time.Sleep(time.Duration(a.r.IntN(3000)) * time.Microsecond) {
		a.listen()
		for range 1 + a.r.IntN(24) {
			if a.r.IntN(8) > 0 || !a.spoil(a.r) {
				kinds[a.r.IntN(len(kinds))]()
			}
		}
		if time.Since(said) > 100*time.Millisecond {
			fmt.Println("sent", a.sent, "of them with a wrong checksum", a.corrupted, "heard", a.total)
			said = time.Now()
		}
	}
}

// listen keeps received packets and answers questions for its own address.
func (a *attacker) listen() {
	for f := a.hear(); f != nil; f = a.hear() {
		if len(f) < wire.EthernetLen || wire.MAC(f[6:12]) == a.mac {
			continue // from an attacker: no use to replay a damaged packet
		}
		if joined(f) {
			continue
		}
		var h wire.Frame
		if h.Parse(f, len(f)) == nil {
			switch src, dst := h.Addrs(); {
			case h.Type == wire.EtherTypeARP:
				a.answer(f)
			case src.Addr() == a.victim:
				a.victimMAC = h.Src
			case dst.Addr() == a.victim && !h.Dst.IsGroup():
				a.victimMAC = h.Dst
			}
		}
		if a.total++; len(a.heard) < heardMost {
			a.heard = append(a.heard, f)
		} else {
			a.heard[a.total%heardMost] = f
		}
	}
}

// joined reports whether a frame has several datagrams between UDP sockets, which the kernel shows before it splits
// them (UDP_SEGMENT). Replayed as one datagram it would be another packet with the first one's cookie: a forgery, not
// a replay.
func joined(f []byte) bool {
	var h wire.Frame
	var e wire.Encap
	if h.Parse(f, len(f)) != nil || h.Proto != wire.ProtoUDP || h.PayloadLen <= wire.EncapLen ||
		e.Parse(f[h.PayloadOff:]) != nil {
		return false
	}
	at := h.PayloadOff
	for kind := range byte(wire.EncapPadded) + 1 {
		if bytes.Contains(f[at+wire.EncapLen:], append(bytes.Clone(f[at:at+3]), kind)) {
			return true
		}
	}
	return false
}

func (a *attacker) answer(f []byte) {
	var q wire.ARP
	if _, err := q.Parse(f[wire.EthernetLen:]); err != nil || !a.lies || netip.AddrFrom4(q.TargetIP) != a.self {
		return
	}
	a.victimMAC = q.SenderMAC
	b := make([]byte, 64)
	at := wire.PutEthernet(b, q.SenderMAC, a.mac, wire.EtherTypeARP)
	r := wire.ARP{Op: 2, SenderMAC: a.mac, SenderIP: a.self.As4(), TargetMAC: q.SenderMAC, TargetIP: q.SenderIP}
	a.put(b[:at+r.Put(b[at:])])
}

func (a *attacker) put(frame []byte) {
	if len(frame) >= wire.EthernetLen {
		copy(frame[6:12], a.mac[:])
		a.send(frame)
		a.sent++
	}
}

// some returns a copy of a received datagram to the victim, with a right checksum, and the offset of its payload.
func (a *attacker) some() (f []byte, at int) {
	for range 8 {
		if len(a.heard) == 0 {
			return nil, 0
		}
		f := a.heard[a.r.IntN(len(a.heard))]
		at, ok := a.toVictim(f)
		if !ok && !(a.lies && at > 0) {
			continue
		}
		f = bytes.Clone(f)
		setChecksum(f)
		return f, at
	}
	return nil, 0
}

// toVictim returns the offset of a datagram's payload, 0 if a frame has none, and whether the victim is its
// destination.
func (a *attacker) toVictim(f []byte) (at int, ok bool) {
	var h wire.Frame
	if h.Parse(f, len(f)) != nil || h.Proto != wire.ProtoUDP {
		return 0, false
	}
	_, dst := h.Addrs()
	return h.PayloadOff, dst.Addr() == a.victim
}

// setChecksum gives a datagram the right UDP checksum.
func setChecksum(f []byte) {
	if binary.BigEndian.Uint16(f[12:]) == uint16(wire.EtherTypeIPv6) {
		wire.SetUDP6Checksum(f)
		return
	}
	wire.SetUDPChecksum(f)
}

// unfinished reports a datagram whose right checksum, which happens once in 65,536, is also the value that the kernel
// leaves if it has not computed the checksum. A port on an interface of the kernel must accept it with any payload.
func unfinished(f []byte) bool {
	var h wire.Frame
	return h.Parse(f, len(f)) == nil && wire.UnfinishedUDPChecksum(&h)
}

func (a *attacker) replay() {
	f, _ := a.some()
	a.put(f)
}

// backwards sends a series of received packets in reverse order.
func (a *attacker) backwards() {
	for range 4 {
		a.replay()
	}
}

func (a *attacker) truncate() {
	if f, _ := a.some(); f != nil {
		a.put(f[:a.r.IntN(len(f)+1)])
	}
}

func (a *attacker) damage() {
	f, at := a.some()
	if len(f) > at && !unfinished(f) {
		f[at+a.r.IntN(len(f)-at)] ^= byte(1 + a.r.IntN(255))
		a.put(f)
	}
}

// forge changes the header of a packet: it guesses all numbers, or, if lies is set, any of them.
func (a *attacker) forge() {
	f, at := a.some()
	var e wire.Encap
	if len(f) > at+wire.EncapLen && e.Parse(f[at:]) == nil {
		at += wire.EncapLen
	}
	if len(f) < at+wire.TRPExtLen {
		return
	}
	var t wire.TRP
	if _, err := t.Parse(f[at:]); err != nil {
		return
	}
	if !a.lies || a.r.IntN(2) == 0 {
		t = wire.TRP{PSN: wire.PSN(a.r.Uint32()), Ack: wire.PSN(a.r.Uint32()), Cookie: a.r.Uint32()}
	}
	t.Op, t.Credits, t.Flags = wire.TRPOp(a.r.IntN(8)), uint32(a.r.IntN(wire.MaxWideCredits+1)>>a.r.IntN(20)),
		wire.FlagAckRequested
	t.PSN += wire.PSN(a.r.IntN(5))
	t.Put(f[at:])
	setChecksum(f)
	a.put(f)
}

// corrupt sends a packet that a damaged line might deliver: the packet that a connection expects next, or one soon
// after, with all its numbers right and a wrong byte in its payload. Only the checksum shows the damage.
func (a *attacker) corrupt() {
	f, at := a.newest()
	if f == nil {
		return
	}
	var t wire.TRP
	if _, err := t.Parse(f[at:]); err != nil || t.Op != wire.OpData {
		return
	}
	t.PSN += wire.PSN(1 + a.r.IntN(8))
	t.Put(f[at:])
	setChecksum(f)
	if unfinished(f) {
		return
	}
	f[len(f)-1] ^= byte(1 + a.r.IntN(255))
	a.put(f)
	a.corrupted++
}

// newest returns a copy of the latest packet with a payload to the victim, and the offset of its TRP header.
func (a *attacker) newest() (f []byte, at int) {
	for i := range min(len(a.heard), 64) {
		f := a.heard[(a.total-i)%len(a.heard)]
		at, ok := a.toVictim(f)
		var e wire.Encap
		if !ok {
			continue
		}
		if len(f) > at+wire.EncapLen && e.Parse(f[at:]) == nil {
			at += wire.EncapLen
		}
		if len(f) > at+wire.TRPExtLen+32 {
			return bytes.Clone(f), at
		}
	}
	return nil, 0
}

// stranger returns an address of the victim's network that no host has.
func (a *attacker) stranger() netip.Addr {
	b := a.victim.AsSlice()
	b[len(b)-1] = byte(120 + a.r.IntN(100))
	n, _ := netip.AddrFromSlice(b)
	return n
}

// request floods a listener with handshakes from addresses that no host has.
func (a *attacker) request() {
	b := make([]byte, 600)
	t := wire.TRP{Op: wire.OpRequest, PSN: wire.PSN(a.r.Uint32())}
	at := t.Put(b)
	c := wire.TRPConnect{IRD: uint16(a.r.IntN(70)), ORD: uint16(a.r.IntN(70)), PrivateData: make([]byte, a.r.IntN(200)),
		HasExt: a.r.IntN(2) == 0,
		Ext:    wire.TRPExtension{Cookie: a.r.Uint32(), QPN: 5, MaxSegment: 1400, RecvWindow: uint16(a.r.IntN(4096))}}
	n, err := c.Put(b[at:])
	if err != nil {
		return
	}
	payload := b[:at+n]
	sport, dport := uint16(a.r.Uint32()), a.flood
	if a.r.IntN(2) == 0 { // the form for a port over a UDP socket
		e := wire.Encap{Src: sport, Dst: dport}
		with := make([]byte, wire.EncapLen, wire.EncapLen+len(payload))
		e.Put(with)
		payload, dport = append(with, payload...), 30035
	}
	f := a.datagram(a.stranger(), sport, dport, payload)
	setChecksum(f)
	a.put(f)
}

// datagram returns a frame for the victim, without a checksum.
func (a *attacker) datagram(src netip.Addr, sport, dport uint16, payload []byte) (f []byte) {
	if a.victim.Is6() {
		var h wire.UDP6Header
		h.Init(a.mac, a.victimMAC, src.As16(), a.victim.As16(), sport, dport)
		f = append(h[:], payload...)
		h.Put(f, len(payload))
		return f
	}
	var h wire.UDPHeader
	h.Init(a.mac, a.victimMAC, src.As4(), a.victim.As4(), sport, dport)
	f = append(h[:], payload...)
	h.Put(f, len(payload), uint16(a.r.Uint32()))
	return f
}

// neighbour announces addresses that no host has, and asks for them.
func (a *attacker) neighbour() {
	mac := wire.MAC{2, byte(a.r.IntN(256)), byte(a.r.IntN(256)), 1, 2, 3}
	b := make([]byte, wire.NDPFrameLen)
	if a.victim.Is6() {
		n := wire.NDP{Type: wire.ICMPv6Solicit + uint8(a.r.IntN(2)), Override: a.r.IntN(2) == 0, Target: a.stranger().As16(),
			MAC: mac, HasMAC: true}
		if n.Type == wire.ICMPv6Solicit && a.r.IntN(2) == 0 {
			n.Target = a.victim.As16()
		}
		a.put(b[:n.Put(b, mac, a.victimMAC, a.stranger().As16(), a.victim.As16())])
		return
	}
	at := wire.PutEthernet(b, a.victimMAC, mac, wire.EtherTypeARP)
	r := wire.ARP{Op: uint16(a.r.IntN(4)), SenderMAC: mac, SenderIP: a.stranger().As4(), TargetMAC: a.victimMAC,
		TargetIP: a.victim.As4()}
	a.put(b[:at+r.Put(b[at:])])
}

// garbage sends random bytes after an Ethernet header.
func (a *attacker) garbage() {
	b := make([]byte, wire.EthernetLen+a.r.IntN(1400))
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], a.r.Uint64())
	}
	wire.PutEthernet(b, a.victimMAC, a.mac, []wire.EtherType{wire.EtherTypeIPv4, wire.EtherTypeARP, 0x86dd}[a.r.IntN(3)])
	if len(b) > wire.UDPHeaderLen && a.r.IntN(2) == 0 {
		b[wire.EthernetLen], b[wire.EthernetLen+9] = 0x45, wire.ProtoUDP
		copy(b[wire.EthernetLen+16:], a.victim.AsSlice())
		if a.victim.Is6() {
			b[wire.EthernetLen], b[wire.EthernetLen+6] = 0x60, wire.ProtoUDP
			copy(b[wire.EthernetLen+24:], a.victim.AsSlice())
		}
	}
	a.put(b)
}
