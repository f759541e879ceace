package wire

import (
	"encoding/binary"
	"net/netip"
)

// Datagram is the header of a datagram between two queue pairs of type UD, with TRP's base header (docs/WIRE.md
// chapter 10).
type Datagram struct {
	PSN          PSN // counts the sender's datagrams
	Dst, Src     QPN
	QKey         uint32
	Immediate    uint32 // as the program stored it: network byte order
	HasImmediate bool
	Solicited    bool
}

const (
	// DatagramPort is the source and destination UDP port number of datagrams.
	DatagramPort = 30034

	// DatagramLen is the length of the header.
	DatagramLen = TRPLen + 20

	// GRHLen is the length of the GRH in front of a received datagram.
	GRHLen = 40

	// MulticastQPN is the destination queue pair number of a multicast datagram.
	MulticastQPN QPN = 0xffffff

	// GeneralQPN and GeneralQKey are the queue pair number and Q_Key for general management datagrams (InfiniBand's
	// general services interface, GSI).
	GeneralQPN  QPN    = 1
	GeneralQKey uint32 = 0x80010000

	datagramImmediate = 1 << 31
	datagramSolicited = 1 << 30
)

// Parse reads the header at the start of b.
func (d *Datagram) Parse(b []byte) error {
	if len(b) < DatagramLen {
		return ErrDatagramShort
	}
	if TRPOp(b[8]>>4) != OpDatagram {
		return ErrDatagramOpcode
	}
	flags := binary.BigEndian.Uint32(b[22:])
	*d = Datagram{
		PSN:          PSN(binary.BigEndian.Uint32(b[0:])),
		Dst:          QPN(binary.BigEndian.Uint32(b[10:])),
		Src:          QPN(binary.BigEndian.Uint32(b[14:])),
		QKey:         binary.BigEndian.Uint32(b[18:]),
		Immediate:    binary.NativeEndian.Uint32(b[26:]),
		HasImmediate: flags&datagramImmediate != 0,
		Solicited:    flags&datagramSolicited != 0,
	}
	if d.Dst > MulticastQPN || d.Src > MulticastQPN {
		return ErrDatagramQPN
	}
	return nil
}

// Put writes the header into the first DatagramLen bytes of b.
func (d *Datagram) Put(b []byte) {
	b = b[:DatagramLen]
	var flags uint32
	if d.HasImmediate {
		flags |= datagramImmediate
	}
	if d.Solicited {
		flags |= datagramSolicited
	}
	binary.BigEndian.PutUint32(b[0:], uint32(d.PSN))
	binary.BigEndian.PutUint32(b[4:], 0)
	binary.BigEndian.PutUint16(b[8:], uint16(OpDatagram)<<12)
	binary.BigEndian.PutUint32(b[10:], uint32(d.Dst))
	binary.BigEndian.PutUint32(b[14:], uint32(d.Src))
	binary.BigEndian.PutUint32(b[18:], d.QKey)
	binary.BigEndian.PutUint32(b[22:], flags)
	binary.NativeEndian.PutUint32(b[26:], d.Immediate)
}

// PutGRH writes the 40 bytes that a receiver finds in front of a datagram, in RoCEv2's format: an IPv6 header, or
// for IPv4 20 bytes of 0 and an IPv4 header. The datagram came in a UDP packet of length bytes, UDP header
// included; class is its traffic class or TOS.
func PutGRH(b []byte, src, dst netip.Addr, class uint8, length int) {
	if src.Is4() && dst.Is4() {
		putGRH4(b[:GRHLen], src.As4(), dst.As4(), class, length)
		return
	}
	PutIPv6(b, src.As16(), dst.As16(), ProtoUDP, length)
	b[0] |= class >> 4
	b[1] |= class << 4
}

func putGRH4(b []byte, src, dst IPv4, class uint8, length int) {
	clear(b)
	ip := b[GRHLen-IPv4Len:]
	ip[0], ip[1] = 4<<4|IPv4Len/4, class
	binary.BigEndian.PutUint16(ip[2:], uint16(IPv4Len+length))
	binary.BigEndian.PutUint16(ip[6:], ipDontFragment)
	ip[8], ip[9] = defaultTTL, ProtoUDP
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	binary.BigEndian.PutUint16(ip[10:], ^Fold(Checksum(0, ip)))
}

// MaxDatagram is the longest message between queue pairs of type UD, for packets of at most mtu bytes with IP
// headers of ipLen (IPLen). It is the largest of verbs' five MTUs that leaves room for the headers. The headers of
// chapter 11 count on every port, so that both ends report the same ibv_port_attr.active_mtu.
func MaxDatagram(mtu, ipLen int) int {
	headers := ipLen + UDPLen + EncapLen + DatagramLen
	for size := 4096; size > 256; size /= 2 {
		if mtu >= size+headers {
			return size
		}
	}
	return 256
}
