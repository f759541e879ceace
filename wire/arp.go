package wire

import "encoding/binary"

// ARPLen is the length of an ARP packet for IPv4 over Ethernet.
const ARPLen = 28

// ARP operations (RFC 826).
const (
	ARPRequest = 1
	ARPReply   = 2
)

// ARP is an ARP packet for IPv4 over Ethernet.
type ARP struct {
	Op        uint16
	SenderMAC MAC
	SenderIP  IPv4
	TargetMAC MAC
	TargetIP  IPv4
}

// arpKind is the fixed start of the packet: hardware type 1, protocol 0x0800, address lengths 6 and 4.
const arpKind = 0x0001_0800_0604

// Parse reads the packet at the start of b and ignores Ethernet padding behind it. It accepts any operation.
func (a *ARP) Parse(b []byte) (n int, err error) {
	if len(b) < ARPLen {
		return 0, ErrARPShort
	}
	if binary.BigEndian.Uint64(b)>>16 != arpKind {
		return 0, ErrARPKind
	}
	a.Op = binary.BigEndian.Uint16(b[6:])
	a.SenderMAC, a.SenderIP = MAC(b[8:14]), IPv4(b[14:18])
	a.TargetMAC, a.TargetIP = MAC(b[18:24]), IPv4(b[24:28])
	return ARPLen, nil
}

// Put writes the 28 bytes. The caller pads the frame to Ethernet's minimum if
// its port needs that.
func (a *ARP) Put(b []byte) int {
	_ = b[ARPLen-1]
	binary.BigEndian.PutUint64(b, arpKind<<16|uint64(a.Op))
	copy(b[8:14], a.SenderMAC[:])
	copy(b[14:18], a.SenderIP[:])
	copy(b[18:24], a.TargetMAC[:])
	copy(b[24:28], a.TargetIP[:])
	return ARPLen
}
