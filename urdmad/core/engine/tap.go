package engine

import (
	"net/netip"

	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// This file shows frames to captures. Without a tap it costs a
// comparison for each frame.

// Tap is shown the frames of the engine's ports, on the worker's thread, in the
// order in which they were received or sent.
type Tap interface {
	// Begin shows a frame before anything is done with it. s and its frame are
	// valid during the call only. False: the tap doesn't care for the end.
	Begin(s *Sight) bool
	// End says what became of the last frame for which Begin was true and that
	// has not ended; sent frames may begin and end within a received one. The
	// note is empty if nothing remarkable happened.
	End(note string)
}

// Sight is a frame as a tap sees it.
type Sight struct {
	Dev     int
	Out     bool   // sent, not received
	Local   bool   // made up for a connection within this engine, see tap_local.go
	Foreign bool   // none of ours: another protocol's or another host's
	Frame   []byte // from the Ethernet header on
	// Conn is the connection that it belongs to, or nil; Other the other end of
	// one within this engine.
	Conn, Other *qp.Connection

	// Our and the peer's address, invalid if the frame has none; port number 0
	// in frames that are neither UDP nor TCP.
	Our, Peer netip.AddrPort
}

// taps are those that look now; netif.Tap, samehost.Observer,
// datagram.Observer and mpa.Observer.
type taps struct {
	e      *Engine
	list   []tapped
	sight  Sight // being shown
	madeUp madeUp
}

// tapped is a tap with what it has in hand.
type tapped struct {
	tap   Tap
	waits bool // for the end of the frame being received
}

// AddTap shows frames to t from now on; on the worker's thread.
func (e *Engine) AddTap(t Tap) {
	e.taps.list = append(e.taps.list, tapped{tap: t})
	e.taps.attach()
}

// RemoveTap stops that; on the worker's thread, between frames.
func (e *Engine) RemoveTap(t Tap) {
	v := &e.taps
	for i := range v.list {
		if v.list[i].tap == t {
			v.list = append(v.list[:i], v.list[i+1:]...)
			break
		}
	}
	v.attach()
}

// Tapped reports whether anybody looks at frames.
func (e *Engine) Tapped() bool { return len(e.taps.list) > 0 }

// attach has the rooms show frames if anybody looks.
func (v *taps) attach() {
	looked := len(v.list) > 0
	for _, p := range v.e.ports {
		if looked {
			p.If.SetTap(v)
		} else {
			p.If.SetTap(nil)
		}
	}
	if looked {
		v.e.SameHost.SetObserver(v)
		v.e.Datagrams.SetObserver(v)
		v.e.MPA.SetObserver(v)
	} else {
		v.e.SameHost.SetObserver(nil)
		v.e.Datagrams.SetObserver(nil)
		v.e.MPA.SetObserver(nil)
		v.madeUp = madeUp{}
	}
}

// Received is netif.Tap's.
func (v *taps) Received(n *netif.Interface, frame []byte) {
	v.sight = v.sightOf(n, frame, false)
	for i := range v.list {
		v.list[i].waits = v.list[i].tap.Begin(&v.sight)
	}
}

// Handled is netif.Tap's.
func (v *taps) Handled(note string) {
	for i := range v.list {
		if v.list[i].waits {
			v.list[i].waits = false
			v.list[i].tap.End(note)
		}
	}
}

// Sent is netif.Tap's.
func (v *taps) Sent(n *netif.Interface, frame []byte) { v.show(v.sightOf(n, frame, true), "") }

func (v *taps) show(s Sight, note string) {
	v.sight = s
	for i := range v.list {
		if v.list[i].tap.Begin(&v.sight) {
			v.list[i].tap.End(note)
		}
	}
}

// sightOf finds out whose a frame is.
func (v *taps) sightOf(n *netif.Interface, frame []byte, out bool) Sight {
	s := Sight{Dev: n.Dev, Out: out, Frame: frame}
	var private [wire.MaxHeaderLen]byte
	head := private[:copy(private[:], frame)]
	var f wire.Frame
	if f.Parse(head, len(frame)) != nil {
		return s
	}
	switch f.Type {
	case wire.EtherTypeARP:
		s.sightARP(head[f.PayloadOff:])
		return s
	case wire.EtherTypeIPv4, wire.EtherTypeIPv6:
	default:
		s.Foreign = true
		return s
	}
	s.Peer, s.Our = f.Addrs()
	if out {
		s.Our, s.Peer = s.Peer, s.Our
	}
	s.Foreign = s.Our.Addr() != n.IP() || f.Proto != wire.ProtoUDP && f.Proto != wire.ProtoICMP
	if f.Proto == wire.ProtoUDP && !s.Foreign {
		if c := v.e.ports[n.Dev].Conn(s.Our.Port()); c != nil {
			s.Conn = &c.Connection
		}
	}
	return s
}

func (s *Sight) sightARP(b []byte) {
	var a wire.ARP
	if _, err := a.Parse(b); err != nil {
		return
	}
	s.Our, s.Peer = addrPort(a.TargetIP, 0), addrPort(a.SenderIP, 0)
	if s.Out {
		s.Our, s.Peer = s.Peer, s.Our
	}
}

func addrPort(ip wire.IPv4, number uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4(ip), number)
}
