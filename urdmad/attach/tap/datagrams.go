package tap

import (
	"encoding/binary"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/urdmad/core/netif"
	"urdma/wire"
)

// frameOf returns the frame of a packet that is received or sent; on a port of datagrams, the one that it
// would be on a port of frames. There its port numbers are those in the encapsulation header, or of the
// sockets if that is invalid. The frame is valid until the next one is made.
func (v *Tap) frameOf(n *netif.Interface, p *port.Packet, out bool) []byte {
	if !netif.OfDatagrams(n) {
		return p.Data
	}
	bare, data := v.e.SpeaksRoCE(n.Dev), p.Data
	h := wire.Encap{Src: p.Peer.Port, Dst: n.Link().Port}
	if out {
		h.Src, h.Dst = h.Dst, h.Src
	}
	if seen := h; !bare && seen.Parse(data) == nil && (seen.Type == wire.EncapTRP || seen.Type == wire.EncapPadded) {
		h = seen
		data = data[wire.EncapLen:]
		if packet, err := wire.Unpad(data); seen.Type == wire.EncapPadded && err == nil {
			data = packet
		}
	}
	src, dst := netip.AddrPortFrom(n.IP(), h.Src), netip.AddrPortFrom(p.Peer.Addr(), h.Dst)
	if !out {
		src, dst = netip.AddrPortFrom(p.Peer.Addr(), h.Src), netip.AddrPortFrom(n.IP(), h.Dst)
		if group := n.BareDst(p); group.IsValid() {
			dst = netip.AddrPortFrom(group, h.Dst)
		}
	}
	room := v.madeUp.room(len(data))
	frame := room[:wire.PutUDP(room, src, dst, data)]
	if bare && !out && src.Addr().Is4() {
		v.number(frame)
	}
	return frame
}

// number sets the identification in the frame of a bare datagram to the one with which it arrived.
func (v *Tap) number(frame []byte) {
	ip := frame[wire.EthernetLen:]
	id, whole, ok := v.crc.Unseen(ip[:wire.IPv4Len+wire.UDPLen], ip[wire.IPv4Len+wire.UDPLen:])
	if !ok {
		return
	}
	binary.BigEndian.PutUint16(ip[4:], id)
	if !whole {
		ip[6] = 0
	}
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^wire.Fold(wire.Checksum(0, ip[:wire.IPv4Len])))
}
