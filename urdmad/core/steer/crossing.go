package steer

import (
	"net/netip"

	"urdma/dpdk/port"
	"urdma/wire"
)

// This file converts packets to the address of another port of this urdmad, if the two ports differ: one
// carries frames, the other payloads of UDP sockets.

// as converts a packet that this worker sends to a packet as received by a port; false if there is no
// equivalent. The result is valid until the next call.
func (q *queue) as(at *Port, v port.Packet) (port.Packet, bool) {
	switch p := q.p; {
	case at == p:
		return v, true
	case p.info.Datagrams && at.info.Datagrams:
		v.Peer = port.PeerOf(netip.AddrPortFrom(*p.addr.Load(), v.Peer.Port)) // it had the destination
		return v, true
	case p.info.Datagrams == at.info.Datagrams:
		return v, true
	case p.roce != at.roce:
		return v, false
	case p.info.Datagrams:
		return q.framed(at, v)
	}
	return q.unframed(v)
}

// framed converts a payload to a frame.
func (q *queue) framed(at *Port, v port.Packet) (port.Packet, bool) {
	e := wire.Encap{Src: v.Peer.Port, Dst: v.Peer.Port} // RoCEv2 has a single port number
	data := v.Data
	if !q.p.roce {
		if e.Parse(data) != nil {
			return v, false
		}
		data = data[wire.EncapLen:]
		switch e.Type {
		case wire.EncapTRP:
		case wire.EncapPadded:
			var err error
			if data, err = wire.Unpad(data); err != nil {
				return v, false
			}
		default: // paths of frames are not probed
			return v, false
		}
	}
	if n := wire.UDP6HeaderLen + len(data); len(q.made) < n {
		q.made = make([]byte, n)
	}
	v.Data = q.made[:wire.PutUDP(q.made, netip.AddrPortFrom(*q.p.addr.Load(), e.Src),
		netip.AddrPortFrom(*at.addr.Load(), e.Dst), data)]
	return v, true
}

// unframed converts a frame to a payload.
func (q *queue) unframed(v port.Packet) (port.Packet, bool) {
	var f wire.Frame
	if f.Parse(v.Data, len(v.Data)) != nil || f.Proto != wire.ProtoUDP {
		return v, false
	}
	src := netip.AddrFrom16(f.Src6)
	if f.Type == wire.EtherTypeIPv4 {
		src = netip.AddrFrom4(f.SrcIP)
	}
	v.Peer = port.PeerOf(netip.AddrPortFrom(src, f.SrcPort))
	data := v.Data[f.PayloadOff : f.PayloadOff+f.PayloadLen]
	if q.p.roce {
		v.Data = data
		return v, true
	}
	if n := wire.EncapLen + len(data); len(q.made) < n {
		q.made = make([]byte, n)
	}
	(&wire.Encap{Src: f.SrcPort, Dst: f.DstPort}).Put(q.made)
	v.Data = q.made[:wire.EncapLen+copy(q.made[wire.EncapLen:], data)]
	return v, true
}
