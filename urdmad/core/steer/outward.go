package steer

import (
	"encoding/binary"

	"urdma/wire"
)

// PeerQueue returns the queue for a frame that we send to a peer with several queues, one for each of its
// workers: the queue of the receiving worker, as Port.frame finds it at the peer if that worker chose the
// number. For other frames it is the first queue. The frame's owner may change it at any time.
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

// PeerQueueRoCE is the same for RoCEv2, whose packets have a queue pair number.
func PeerQueueRoCE(frame []byte, queues int) int {
	b := datagramIn(frame)
	if len(b) < wire.UDPLen {
		return first
	}
	n, ok := destinationPair(b[wire.UDPLen:])
	if !ok {
		return first
	}
	return pairQueue(n, queues)
}

// destinationPair returns the number of the queue pair that a RoCEv2 packet is for, 24 bits of its base transport
// header.
func destinationPair(packet []byte) (n uint32, ok bool) {
	const pair = 4
	if len(packet) < pair+4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(packet[pair:]) & (1<<24 - 1), true
}

func pairQueue(n uint32, queues int) int {
	if n == uint32(wire.GeneralQPN) {
		return first
	}
	return wire.WorkerOf(n, queues)
}

// datagramIn returns a frame from its UDP header on. It is empty unless the UDP header directly follows an
// IPv4 header or an IPv6 header without extension headers, as in our frames.
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
