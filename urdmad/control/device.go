package control

import (
	"net/netip"
	"sync/atomic"

	"urdma/urdmad/control/account"
	"urdma/verbs/personality"
	"urdma/wire"
)

// Device is a port as clients see it. Its number is its index in Server.Devices; the ports of one
// device follow each other.
type Device struct {
	Name        string // port name
	Of          string // device name, as programs see it
	Number      int    // port number on the device, from 1
	Place              // place when urdmad started; see At
	Scope       uint32 // index of the kernel interface of link-local addresses; 0: none
	MAC         [6]byte
	Personality *personality.Personality // kind of device that programs see, unless they ask for another
	MaxQP       int
	Link        func() bool

	Pairs account.Pairs         // queue pairs; on a device's first port: those of all its ports
	place atomic.Pointer[Place] // set by SetPlace; nil: Place
}

// Place is a port's address and MTU.
type Place struct {
	Address netip.Prefix // the port's address, with its network's prefix length; unspecified: none
	MTU     int          // bytes of the largest IP packet
}

// At returns the port's present place. Any goroutine may call it.
func (d *Device) At() Place {
	if p := d.place.Load(); p != nil {
		return *p
	}
	return d.Place
}

// MaxDatagram returns the longest message between UD queue pairs.
func (d *Device) MaxDatagram() uint32 {
	at := d.At()
	return uint32(wire.MaxDatagram(at.MTU, wire.IPLen(at.Address.Addr())))
}
