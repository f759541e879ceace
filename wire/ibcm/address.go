package ibcm

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// ServiceID names what a request is for.
type ServiceID uint64

// Service IDs of rdma_cm's port spaces (annex A11).
const (
	tcpServices ServiceID = 0x0000000001060000
	udpServices ServiceID = 0x0000000001110000
)

// TCPService is a port number of RDMA_PS_TCP.
func TCPService(port uint16) ServiceID { return tcpServices | ServiceID(port) }

// TCPPort is the port number that a service ID of RDMA_PS_TCP has.
func (s ServiceID) TCPPort() (port uint16, ok bool) {
	return uint16(s), s&^0xffff == tcpServices
}

// UDPService is a port number of RDMA_PS_UDP.
func UDPService(port uint16) ServiceID { return udpServices | ServiceID(port) }

// UDPPort is the port number that a service ID of RDMA_PS_UDP has.
func (s ServiceID) UDPPort() (port uint16, ok bool) { return uint16(s), s&^0xffff == udpServices }

// HeaderLen is the length of rdma_cm's header.
const HeaderLen = 36

// MaxPrivate is how long the private data of a request of rdma_cm may be.
const MaxPrivate = requestPrivate - HeaderLen

// MaxServicePrivate and MaxServiceReply are those of a SIDRRequest of rdma_cm and of its
// answer.
const (
	MaxServicePrivate = 216 - HeaderLen
	MaxServiceReply   = 136
)

// Addresses are those of rdma_cm's header: of the asking and of the asked side.
type Addresses struct {
	Src netip.AddrPort
	Dst netip.Addr
}

// ErrAddresses refuses a header.
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

// AskingTID is that of a SIDRRequest of ours. Its answer repeats it, and does not say the port
// numbers of who asks and who is asked otherwise.
func AskingTID(id uint32, asking, asked uint16) uint64 {
	return uint64(id)<<32 | uint64(asking)<<16 | uint64(asked)
}

// Numbers are the port numbers in an AskingTID.
func Numbers(tid uint64) (asking, asked uint16) { return uint16(tid >> 16), uint16(tid) }
