// Package convert turns what package cm speaks into what crosses to clients, and back:
// addresses, devices, connection parameters, events.
package convert

import (
	"net/netip"
	"syscall"

	"urdma/urdmad/cm"
	"urdma/verbs/abi"
)

// AddrPort is a client's socket address, 0.0.0.0 if it has no family. The zone of a
// link-local one is an interface's index.
func AddrPort(a abi.Addr) (netip.AddrPort, error) {
	switch v := a.AddrPort(); a.Family {
	case syscall.AF_UNSPEC:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), a.Port()), nil
	case syscall.AF_INET, syscall.AF_INET6:
		return netip.AddrPortFrom(v.Addr().Unmap(), a.Port()), nil
	}
	return netip.AddrPort{}, syscall.EAFNOSUPPORT
}

// Addr is an address as clients get it.
func Addr(a netip.AddrPort) abi.Addr {
	v, _ := abi.AddrFrom(a) // errors are about zones, which no address of ours has
	return v
}

// Device is a device's number, or that of no device for any.
func Device(dev int) uint32 {
	if dev < 0 {
		return abi.NoDevice
	}
	return uint32(dev)
}

// Param is what a client wants of a connection.
func Param(p *abi.CMParam) *cm.Param {
	return &cm.Param{ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RNRRetryCount: p.RNRRetryCount, RetryCount: min(p.RetryCount, 7), QPN: p.QPNum, QKey: p.QKey, PrivateData: p.Private()}
}

// Event is an event as clients get it; the numbers of its kinds are those of
// rdma_cma.h on both sides.
func Event(e *cm.Event) *abi.CMEvent {
	v := &abi.CMEvent{Event: uint32(e.Kind), Status: -int32(e.Err), ID: e.ID.Handle, Device: Device(e.Dev),
		Local: Addr(e.Local), Peer: Addr(e.Peer),
		Param: abi.CMParam{ResponderResources: e.Param.ResponderResources, InitiatorDepth: e.Param.InitiatorDepth,
			QPNum: e.Param.QPN, QKey: e.Param.QKey}}
	v.Param.SetPrivate(e.Param.PrivateData)
	if e.Child != nil {
		v.Child = e.Child.Handle
	}
	return v
}
