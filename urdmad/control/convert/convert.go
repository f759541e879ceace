// Package convert turns what package cm speaks into what crosses to clients, and back:
// addresses, devices, connection parameters, events.
package convert

import (
	"net/netip"

	"urdma/urdmad/cm"
	"urdma/verbs/abi"
)

// AddrPort is a client's socket address, 0.0.0.0 if it has no family.
func AddrPort(a abi.Addr) (netip.AddrPort, error) {
	ip, err := a.IPv4()
	return netip.AddrPortFrom(netip.AddrFrom4(ip), a.Port()), err
}

// BindAddr is where a client wants to be bound. Of IPv6 there are the addresses
// that stand for all of ours.
func BindAddr(a abi.Addr) (netip.AddrPort, error) {
	if v := a.AddrPort(); v.Addr().Is6() && (v.Addr().IsUnspecified() || v.Addr().IsLoopback()) {
		return v, nil
	}
	return AddrPort(a)
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
