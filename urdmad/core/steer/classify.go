package steer

import (
	"encoding/binary"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// everyone means all workers.
const everyone = -1

// first is the worker that answers requests to the host and counts malformed packets.
const first = 0

// frame returns the worker for a frame, which another process may change at any time.
func (p *Port) frame(b []byte) int {
	h := p.hub
	var f wire.Frame
	var head [wire.MaxHeaderLen]byte
	if f.Parse(head[:copy(head[:], b)], len(b)) != nil {
		return first
	}
	payload := b[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	switch {
	case f.Type == wire.EtherTypeARP:
		return h.arp(payload)
	case f.Type != wire.EtherTypeIPv4 && f.Type != wire.EtherTypeIPv6:
		return first
	case f.Proto == wire.ProtoUDP:
		group := f.Type == wire.EtherTypeIPv4 && f.DstIP.IsGroup() || f.Type == wire.EtherTypeIPv6 && f.Dst6.IsGroup()
		if p.roce {
			return h.packet(payload, group)
		}
		return h.datagram(f.DstPort, payload, group)
	case f.Proto == wire.ProtoIGMP:
		return everyone
	case f.Proto == wire.ProtoICMPv6 && len(payload) > 0:
		switch payload[0] {
		case wire.ICMPv6Advertise, wire.ICMPv6MLDQuery:
			return everyone
		}
	}
	return first
}

// arp returns the workers for an ARP packet: all learn a neighbour's address; one answers requests and
// defends our address.
func (h *Hub) arp(b []byte) int {
	var a wire.ARP
	switch _, err := a.Parse(b); {
	case err != nil, h.device(netip.AddrFrom4(a.SenderIP)) >= 0:
		return first
	case a.Op == wire.ARPReply, a.SenderIP == a.TargetIP:
		return everyone
	}
	return first
}

// worker returns the worker for a packet.
func (p *Port) worker(b []byte) int {
	if p.info.Datagrams {
		return p.payload(b)
	}
	return p.frame(b)
}

// payload returns the worker for a packet of a port of datagrams.
func (p *Port) payload(b []byte) int {
	h := p.hub
	if p.roce {
		return h.packet(b, false)
	}
	var e wire.Encap
	switch {
	case e.Parse(b) != nil || e.Type == wire.EncapProbe:
		return first
	case e.Type == wire.EncapAnswer:
		return everyone
	}
	return h.datagram(e.Dst, b[wire.EncapLen:], false)
}

// datagram returns the worker for a UDP datagram to a port number.
func (h *Hub) datagram(number uint16, b []byte, group bool) int {
	if number != wire.DatagramPort {
		return h.numbers.of(number)
	}
	if group {
		return everyone
	}
	var head [max(wire.DatagramLen, wire.MaxUCLen)]byte
	seen := head[:copy(head[:], b)]
	op, ok := wire.PeekOp(seen)
	if !ok {
		return first
	}
	switch op {
	case wire.OpDatagram:
		var d wire.Datagram
		if d.Parse(seen) == nil {
			return h.pair(d.Dst)
		}
	case wire.OpUC:
		var u wire.UC
		if _, err := u.Parse(seen); err == nil {
			return h.pair(u.Dst)
		}
	case wire.OpRequest:
		if pair, ok := askedFor(b); ok {
			return h.pair(pair)
		}
	}
	return h.numbers.of(number)
}

// askedFor returns the queue pair for which a request by number asks. It allocates memory, which is
// acceptable for rare messages.
func askedFor(b []byte) (wire.QPN, bool) {
	var private [wire.TRPLen + wire.ConnectLen + wire.MaxPrivateData + wire.TRPByNumberLen]byte
	b = private[:copy(private[:], b)]
	var c wire.TRPConnect
	if len(b) > wire.TRPLen && c.Parse(b[wire.TRPLen:]) == nil && c.Ext.ByNumber() {
		return c.Ext.Target, true
	}
	return 0, false
}

// pair returns the worker of a queue pair. Number 1 belongs to the host.
func (h *Hub) pair(n wire.QPN) int {
	if n == wire.GeneralQPN {
		return first
	}
	return wire.WorkerOf(uint32(n), h.workers)
}

// device returns the device that has one of our addresses, negative for none.
func (h *Hub) device(a netip.Addr) int {
	for i, p := range h.ports {
		if *p.addr.Load() == a {
			return i
		}
	}
	return -1
}

// inside returns the device of this urdmad that receives a packet from one of our workers, negative for
// none. A packet to a group has no device, and may be for all workers; wire says that the packet also
// leaves through the port.
func (p *Port) inside(v *port.Packet) (dev int, all, wire bool) {
	if p.info.Datagrams {
		if v.Peer.Addr().IsMulticast() { // TRP's sockets can't send to groups
			return -1, true, p.roce
		}
		dev = p.hub.device(v.Peer.Addr())
		return dev, false, dev < 0
	}
	dst, ok := destination(v.Data)
	if !ok {
		return -1, false, true
	}
	if dev = p.hub.device(dst); dev >= 0 {
		return dev, false, false
	}
	if dst.IsMulticast() && p.frame(v.Data) == everyone {
		return -1, true, p.info.Wire
	}
	return -1, false, true
}

// destination returns the IP destination of a frame.
func destination(b []byte) (netip.Addr, bool) {
	if len(b) < wire.EthernetLen+wire.IPv4Len {
		return netip.Addr{}, false
	}
	ip, kind := b[wire.EthernetLen:], wire.EtherType(binary.BigEndian.Uint16(b[wire.EthernetLen-2:]))
	switch {
	case kind == wire.EtherTypeIPv4:
		return netip.AddrFrom4([4]byte(ip[16:20])), true
	case kind == wire.EtherTypeIPv6 && len(ip) >= wire.IPv6Len:
		return netip.AddrFrom16([16]byte(ip[24:40])), true
	}
	return netip.Addr{}, false
}
