// Package tap shows frames to captures: frames that an engine's ports receive and send, what became
// of the received ones (note.go), and synthesized frames: for ports of datagrams (datagrams.go), and
// for messages within the engine (local.go). It must not know the captures.
package tap

import (
	"net/netip"
	"slices"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
	"urdma/wire/roce"
)

// Viewer is shown the frames of the engine's ports, on the worker's thread, in the
// order in which they were received or sent.
type Viewer interface {
	// Begin shows a frame before it is handled. s and its frame are valid during the call only.
	// It returns false if the viewer does not need End.
	Begin(s *Sight) bool
	// End reports the result for the last unfinished frame for which Begin returned true. Sent
	// frames may begin and end within a received one. The note is empty if nothing remarkable
	// happened.
	End(note string)
}

// Sight describes a frame to a viewer.
type Sight struct {
	Dev     int
	Out     bool   // sent, not received
	Local   bool   // synthesized for a message within this engine, see local.go
	Foreign bool   // of another protocol, or for another host
	Frame   []byte // from the Ethernet header on
	Length  int    // of the frame, the end of which may be missing in Frame
	// Conn is the frame's connection, or nil; Other is the other end of a connection
	// within this engine.
	Conn, Other *qp.Connection

	// Our and the peer's address, invalid if the frame has none; port number 0
	// in frames that are neither UDP nor TCP.
	Our, Peer netip.AddrPort
}

// Tap shows an engine's frames to viewers. It is attached to the engine while there are viewers.
type Tap struct {
	e        *engine.Engine
	list     []viewing
	sight    Sight // current frame
	received received
	madeUp   madeUp
	crc      roce.Sums // of bare datagrams
}

// viewing is an active viewer.
type viewing struct {
	viewer Viewer
	waits  bool // waits for the End of the frame being received
}

// New returns a Tap of an engine, without viewers.
func New(e *engine.Engine) *Tap {
	v := &Tap{e: e}
	v.received.timer = clock.NewTimer(v.handled)
	return v
}

// Add adds a viewer; on the worker's thread.
func (v *Tap) Add(w Viewer) {
	v.list = append(v.list, viewing{viewer: w})
	v.e.QPs.Retired = v.retired
	v.tap(v.packet)
}

// Remove removes a viewer; on the worker's thread, between frames.
func (v *Tap) Remove(w Viewer) {
	v.handled()
	v.list = slices.DeleteFunc(v.list, func(one viewing) bool { return one.viewer == w })
	if len(v.list) == 0 {
		v.e.QPs.Retired = nil
		v.tap(nil)
		v.madeUp = madeUp{}
	}
}

func (v *Tap) tap(fn func(n *netif.Interface, p *port.Packet, sent bool)) {
	for _, n := range v.e.Interfaces() {
		n.Tap = fn
	}
}

// packet is shown a packet of a port.
func (v *Tap) packet(n *netif.Interface, p *port.Packet, sent bool) {
	s := v.sightOf(n, v.frameOf(n, p, sent), sent)
	if sent {
		v.show(s)
		return
	}
	v.handled() // the one before
	v.sight = s
	for i := range v.list {
		v.list[i].waits = v.list[i].viewer.Begin(&v.sight)
	}
	v.begin(n)
}

// show shows a frame of which there is nothing more to say.
func (v *Tap) show(s Sight) {
	v.sight = s
	for i := range v.list {
		if v.list[i].viewer.Begin(&v.sight) {
			v.list[i].viewer.End("")
		}
	}
}

// sightOf determines the connection of a frame.
func (v *Tap) sightOf(n *netif.Interface, frame []byte, out bool) Sight {
	s := Sight{Dev: n.Dev, Out: out, Frame: frame, Length: len(frame)}
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
		if c := v.e.TRP.Port(n.Dev).Conn(s.Our.Port()); c != nil {
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
