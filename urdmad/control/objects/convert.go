package objects

import (
	"bytes"
	"net/netip"
	"syscall"

	"urdma/urdmad/control"
	"urdma/urdmad/core/cm"
	"urdma/verbs/abi"
)

// addrPortOf converts a client's socket address; without an address family it is 0.0.0.0. The
// zone of a link-local address is an interface index.
func addrPortOf(a abi.Addr) (netip.AddrPort, error) {
	switch v := a.AddrPort(); a.Family {
	case syscall.AF_UNSPEC:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port()), nil
	case syscall.AF_INET, syscall.AF_INET6:
		return netip.AddrPortFrom(v.Addr().Unmap(), a.Port()), nil
	}
	return netip.AddrPort{}, syscall.EAFNOSUPPORT
}

// TextIn returns the text of a client's field, up to the first NUL byte.
func TextIn(field []byte) string {
	said, _, _ := bytes.Cut(field, []byte{0})
	return string(bytes.ToValidUTF8(said, []byte("?")))
}

// deviceNumber returns a device's number for clients; a negative dev means any device.
func deviceNumber(dev int) uint32 {
	if dev < 0 {
		return abi.NoDevice
	}
	return uint32(dev)
}

// paramOf converts a client's connection parameters.
func paramOf(p *abi.CMParam) *cm.Param {
	return &cm.Param{ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RNRRetryCount: p.RNRRetryCount, RetryCount: min(p.RetryCount, 7), QPN: p.QPNum, QKey: p.QKey,
		PrivateData: p.Private()}
}

// eventOf converts an event for clients of s. The event numbers on both sides are those of
// rdma_cma.h.
func eventOf(s *control.Server, e *cm.Event) abi.CMEvent {
	v := abi.CMEvent{Event: uint32(e.Kind), Status: -int32(e.Err), ID: e.ID.Handle, Device: deviceNumber(e.Dev),
		Local: s.Addr(e.Local, e.Dev), Peer: s.Addr(e.Peer, e.Dev),
		Param: abi.CMParam{ResponderResources: e.Param.ResponderResources, InitiatorDepth: e.Param.InitiatorDepth,
			QPNum: e.Param.QPN, QKey: e.Param.QKey}}
	if e.Reason != 0 {
		v.Status = int32(e.Reason) // the libraries have it be an errno where a device is shown as iWARP's
	}
	v.Param.SetPrivate(e.Param.PrivateData)
	if e.Child != nil {
		v.Child = e.Child.Handle
	}
	return v
}
