package hostile

import (
	"encoding/binary"
	"net/netip"

	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// roceHeader parses the transport header of a RoCEv2 datagram.
func roceHeader(f []byte, at int) (h roce.Header, from int, ok bool) {
	if binary.BigEndian.Uint16(f[at-wire.UDPLen+2:]) != roce.Port {
		return h, 0, false
	}
	from, _, err := h.Payload(f[at:], len(f)-at)
	return h, at + from, err == nil
}

// seal gives a packet the right CRC, and its datagram the right checksum.
func seal(f []byte, at int) {
	var sums roce.Sums
	sums.Put(f[wire.EthernetLen:at], f[at:])
	setChecksum(f)
}

// forgeRoCE changes the header of a packet whose queue pair it knows. It guesses all other numbers, so the packet is
// never the expected one.
func (a *attacker) forgeRoCE() {
	f, at := a.some()
	if f == nil {
		return
	}
	h, from, ok := roceHeader(f, at)
	if !ok || h.Opcode.Transport() != roce.RC {
		return
	}
	payload := f[from:]
	for h.Opcode = roce.Opcode(a.r.IntN(24)); h.Opcode.Traits() == 0; h.Opcode = roce.Opcode(a.r.IntN(24)) {
	}
	h.PSN, h.AckReq = h.PSN.Add(1<<16+a.r.Uint32N(1<<23)), true // far from the expected PSN
	h.VA, h.RKey, h.Length, h.Dead = a.r.Uint64(), wire.STag(a.r.Uint32()), a.r.Uint32()>>a.r.IntN(32),
		wire.STag(a.r.Uint32())
	h.AETH.Syndrome = roce.Syndrome(a.r.Uint32())
	b := make([]byte, roce.MaxHeaderLen+len(payload))
	n := h.Put(b)
	n += copy(b[n:], payload)
	var heads wire.Frame
	if heads.Parse(f, len(f)) == nil {
		src, dst := heads.Addrs()
		f = a.datagram(src.Addr(), src.Port(), dst.Port(), b[:n])
		seal(f, len(f)-n)
		a.put(f)
	}
}

// corruptRoCE sends the packet that a connection expects next, or one soon after, with a wrong byte in its payload.
// Only the CRC shows the damage. Between UDP sockets, whose packets come from port 4791, a part of the CRC is not
// known, and the checksum shows it (corrupt).
func (a *attacker) corruptRoCE() {
	f, at := a.newest()
	if f == nil {
		return
	}
	h, from, ok := roceHeader(f, at)
	if !ok || h.Opcode.Transport() != roce.RC || h.Opcode.Traits().Is(roce.Response) || len(f) < from+2*roce.ICRCLen {
		return
	}
	h.PSN = h.PSN.Add(uint32(1 + a.r.IntN(8)))
	h.Put(f[at:])
	seal(f, at)
	f[len(f)-roce.ICRCLen-1-a.r.IntN(roce.ICRCLen)] ^= byte(1 + a.r.IntN(255))
	if binary.BigEndian.Uint16(f[at-wire.UDPLen:]) != roce.Port {
		setChecksum(f)
	} else if unfinished(f) {
		return
	}
	a.put(f)
	a.corrupted++
}

// askRoCE sends a management datagram of any kind, as if an address that no host has requested a connection with a
// listener, ended one, or answered.
func (a *attacker) askRoCE() {
	m := ibcm.Message{Kind: ibcm.Kind(0x10 + a.r.IntN(9)), TID: a.r.Uint64(), Local: a.r.Uint32(), Remote: a.r.Uint32(),
		QPN: 5, Service: ibcm.TCPService(a.flood),
		PKey: roce.DefaultPKey, PathMTU: uint8(a.r.IntN(6)), Private: make([]byte, ibcm.HeaderLen)}
	src := a.stranger()
	(&ibcm.Addresses{Src: netip.AddrPortFrom(src, uint16(a.r.Uint32())), Dst: a.victim}).Put(m.Private)
	h := roce.Header{Opcode: roce.UD | roce.SendOnly, PKey: roce.DefaultPKey, Dst: ibcm.QP, QKey: ibcm.QKey, Src: ibcm.QP}
	b := make([]byte, 512)
	n := h.Put(b)
	if err := m.Put(b[n:]); err != nil {
		panic(err)
	}
	if n += ibcm.Len; a.r.IntN(4) == 0 {
		b[a.r.IntN(n)] = byte(a.r.Uint32())
	}
	f := a.datagram(src, roce.Port, roce.Port, b[:n+roce.ICRCLen])
	seal(f, len(f)-n-roce.ICRCLen)
	a.put(f)
}
