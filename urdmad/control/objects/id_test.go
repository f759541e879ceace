package objects

import (
	"net/netip"
	"syscall"
	"testing"

	"urdma/urdmad/control"
	"urdma/urdmad/core/cm"
	"urdma/verbs/abi"
)

// TestEventNumbers: package cm knows no ABI, and its numbers are those of the
// ABI all the same.
func TestEventNumbers(t *testing.T) {
	for kind, want := range map[cm.EventKind]uint32{
		cm.EventAddrResolved: abi.CMAddrResolved, cm.EventAddrError: abi.CMAddrError,
		cm.EventRouteResolved: abi.CMRouteResolved, cm.EventConnectRequest: abi.CMConnectRequest,
		cm.EventConnectError: abi.CMConnectError, cm.EventUnreachable: abi.CMUnreachable,
		cm.EventRejected: abi.CMRejected, cm.EventEstablished: abi.CMEstablished,
		cm.EventDisconnected: abi.CMDisconnected,
	} {
		if got := eventOf(&control.Server{}, &cm.Event{Kind: kind, ID: &cm.ID{}}).Event; got != want {
			t.Errorf("%v crosses as %d, expected %d", kind, got, want)
		}
	}
}

// TestEventCrosses: every field of an event reaches the client.
func TestEventCrosses(t *testing.T) {
	s := &control.Server{Devices: make([]control.Device, 2)}
	e := cm.Event{Kind: cm.EventConnectRequest, ID: &cm.ID{Handle: 3}, Child: &cm.ID{Handle: 4}, Err: syscall.EPROTO,
		Dev:   1,
		Local: netip.MustParseAddrPort("10.0.0.1:7000"), Peer: netip.MustParseAddrPort("10.0.0.2:50000"),
		Param: cm.Param{ResponderResources: 5, InitiatorDepth: 6, QPN: 7, PrivateData: []byte("hi")}}
	local, _ := abi.AddrFrom(e.Local)
	peer, _ := abi.AddrFrom(e.Peer)
	want := abi.CMEvent{Event: abi.CMConnectRequest, Status: -int32(syscall.EPROTO), ID: 3, Child: 4, Device: 1,
		Local: local, Peer: peer,
		Param: abi.CMParam{ResponderResources: 5, InitiatorDepth: 6, QPNum: 7}}
	want.Param.SetPrivate([]byte("hi"))
	if got := eventOf(s, &e); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	e.Dev, e.Child = -1, nil
	if got := eventOf(s, &e); got.Device != abi.NoDevice || got.Child != abi.NoHandle {
		t.Errorf("device %d, child %d of an event that has neither", got.Device, got.Child)
	}
}
