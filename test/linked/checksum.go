package linked

import (
	"encoding/binary"

	"urdma/dpdk/port"
)

const (
	etherTypeIPv4 = 0x0800
	protoUDP      = 17
)

// datagram finds the IPv4 header and the UDP datagram in a frame. ok is false for frames that a NIC would ignore, too
// (other protocols, fragments, wrong lengths).
func datagram(frame []byte) (ip, udp []byte, ok bool) {
	if len(frame) < port.EtherHeaderLen+20 || binary.BigEndian.Uint16(frame[12:]) != etherTypeIPv4 {
		return nil, nil, false
	}
	b := frame[port.EtherHeaderLen:]
	ihl := int(b[0]&0xf) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if b[0]>>4 != 4 || ihl < 20 || total < ihl || total > len(b) {
		return nil, nil, false
	}
	ip = b[:ihl]
	if b[9] != protoUDP || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 || total < ihl+8 {
		return ip, nil, true
	}
	udp = b[ihl:total]
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size < 8 || size > len(udp) {
		return ip, nil, true
	}
	return ip, udp[:size], true
}

// verify checks a received frame as a NIC with checksum offload does.
func verify(frame []byte) (f port.Flags) {
	ip, udp, ok := datagram(frame)
	if !ok {
		return 0
	}
	f = port.RxIPv4Good
	if fold(sum(0, ip)) != 0xffff {
		f = port.RxIPv4Bad
	}
	if udp == nil || binary.BigEndian.Uint16(udp[6:]) == 0 {
		return f
	}
	if fold(sum(pseudo(ip, len(udp)), udp)) != 0xffff {
		return f | port.RxUDPBad
	}
	return f | port.RxUDPGood
}

// fillUDP computes the UDP checksum in place (RFC 768: a sum of 0 is sent as all ones).
func fillUDP(frame []byte) {
	ip, udp, ok := datagram(frame)
	if !ok || udp == nil {
		return
	}
	udp[6], udp[7] = 0, 0
	c := ^fold(sum(pseudo(ip, len(udp)), udp))
	if c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], c)
}

func pseudo(ip []byte, size int) uint64 {
	return sum(uint64(protoUDP)+uint64(size), ip[12:20])
}

func sum(s uint64, b []byte) uint64 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
