package ibcm

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// ServiceID is the service that a request asks for.
type ServiceID uint64

// Service IDs of rdma_cm's port spaces (annex A11).
const (
	tcpServices ServiceID = 0x0000000001060000
	udpServices ServiceID = 0x0000000001110000
)

// TCPService is the service ID of a port number of RDMA_PS_TCP.
func TCPService(port uint16) ServiceID { return tcpServices | ServiceID(port) }

// TCPPort is the port number in a service ID of RDMA_PS_TCP.
func (s ServiceID) TCPPort() (port uint16, ok bool) {
	return uint16(s), s&^0xffff == tcpServices
}

// UDPService is the service ID of a port number of RDMA_PS_UDP.
func UDPService(port uint16) ServiceID { return udpServices | ServiceID(port) }

// UDPPort is the port number in a service ID of RDMA_PS_UDP.
func (s ServiceID) UDPPort() (port uint16, ok bool) { return uint16(s), s&^0xffff == udpServices }

// HeaderLen is the length of rdma_cm's header.
const HeaderLen = 36

// MaxPrivate is the largest private data of a request that rdma_cm sends.
const MaxPrivate = requestPrivate - HeaderLen

// MaxServicePrivate and MaxServiceReply are the largest private data of a SIDRRequest that rdma_cm sends and of its
// reply.
const (
	MaxServicePrivate = 216 - HeaderLen
	MaxServiceReply   = 136
)

// Addresses are the addresses in rdma_cm's header, of the requesting and of the requested side.
type Addresses struct {
	Src netip.AddrPort
	Dst netip.Addr
}

// ErrAddresses is the error for an unusable header.
var ErrAddresses = errors.New("ibcm: rdma_cm header of another version, or without IP addresses")

// Parse reads the header at the start of a request's private data.
func (a *Addresses) Parse(b []byte) error {
	if len(b) < HeaderLen || b[0] != 0 {
		return ErrAddresses
	}
	src, dst := netip.AddrFrom16([16]byte(b[4:])), netip.AddrFrom16([16]byte(b[20:]))
	switch b[1] >> 4 {
	case 4:
		src, dst = netip.AddrFrom4([4]byte(b[16:])), netip.AddrFrom4([4]byte(b[32:]))
	case 6:
	default:
		return ErrAddresses
	}
	a.Src, a.Dst = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[2:])), dst
	return nil
}

// Put writes the header.
func (a *Addresses) Put(b []byte) {
	b = b[:HeaderLen]
	clear(b)
	binary.BigEndian.PutUint16(b[2:], a.Src.Port())
	if a.Src.Addr().Is4() {
		b[1] = 4 << 4
		src, dst := a.Src.Addr().As4(), a.Dst.As4()
		copy(b[16:], src[:])
		copy(b[32:], dst[:])
		return
	}
	b[1] = 6 << 4
	src, dst := a.Src.Addr().As16(), a.Dst.As16()
	copy(b[4:], src[:])
	copy(b[20:], dst[:])
}

// AskingTID is the transaction ID of a SIDRRequest that we send. It carries the port numbers of both sides: the
// reply repeats the transaction ID and has no other field for them.
func AskingTID(id uint32, asking, asked uint16) uint64 {
	return uint64(id)<<32 | uint64(asking)<<16 | uint64(asked)
}

// Numbers returns the port numbers in an AskingTID.
func Numbers(tid uint64) (asking, asked uint16) { return uint16(tid >> 16), uint16(tid) }
