package steer

import (
	"encoding/binary"

	"urdma/wire"
)

// PeerQueue is the queue, of so many that a peer has for its workers, that a frame we send is for,
// as frame has it at the peer where its worker chose the number. What it can't tell is for the
// first. A frame's owner may change it at any time.
func PeerQueue(frame []byte, queues int) int {
	b := datagramIn(frame)
	if len(b) < wire.UDPLen {
		return first
	}
	number := binary.BigEndian.Uint16(b[2:])
	if number != wire.DatagramPort {
		return wire.WorkerOf(uint32(number), queues)
	}
	b = b[wire.UDPLen:]
	const pair = wire.TRPLen
	if op, _ := wire.PeekOp(b); (op == wire.OpDatagram || op == wire.OpUC) && len(b) >= pair+4 {
		return pairQueue(binary.BigEndian.Uint32(b[pair:]), queues)
	}
	return first
}

// PeerQueueRoCE is that for RoCEv2, whose packets have a queue pair's number.
func PeerQueueRoCE(frame []byte, queues int) int {
	const pair = wire.UDPLen + 4 // in the base transport header, of 24 bits
	b := datagramIn(frame)
	if len(b) < pair+4 {
		return first
	}
	return pairQueue(binary.BigEndian.Uint32(b[pair:])&(1<<24-1), queues)
}

func pairQueue(n uint32, queues int) int {
	if n == uint32(wire.GeneralQPN) {
		return first
	}
	return wire.WorkerOf(n, queues)
}

// datagramIn is a frame from its UDP header on, empty if it has none where ours have it: behind
// IPv4, or IPv6 without extension headers.
func datagramIn(frame []byte) []byte {
	if len(frame) < wire.EthernetLen+wire.IPv4Len {
		return nil
	}
	ip, kind := frame[wire.EthernetLen:], wire.EtherType(binary.BigEndian.Uint16(frame[wire.EthernetLen-2:]))
	switch {
	case kind == wire.EtherTypeIPv4 && ip[9] == wire.ProtoUDP:
		return ip[min(int(ip[0]&15)*4, len(ip)):]
	case kind == wire.EtherTypeIPv6 && ip[6] == wire.ProtoUDP:
		return ip[min(wire.IPv6Len, len(ip)):]
	}
	return nil
}
