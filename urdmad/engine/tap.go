package engine

import (
	"urdma/dpdk/port"
	"urdma/wire"
)

// This file shows frames to whoever captures them. Without a tap it costs a
// length comparison for each frame.

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
	Dev   int
	Out   bool   // sent, not received
	Local bool   // made up for a connection within this engine, see tap_local.go
	Alien bool   // none of ours: another protocol's or another host's
	Frame []byte // from the Ethernet header on
	Conn  *Conn  // that it belongs to, or nil

	// Ours and the peer's address; zero if the frame has none.
	OurIP, PeerIP wire.IPv4
	// UDP port numbers; 0 in frames that are not UDP.
	OurPort, PeerPort uint16
}

// tapped is a tap with what it has in hand.
type tapped struct {
	tap   Tap
	waits bool // for the end of the frame being received
}

// AddTap shows frames to t from now on; on the worker's thread.
func (e *Engine) AddTap(t Tap) { e.taps = append(e.taps, tapped{tap: t}) }

// RemoveTap stops that; on the worker's thread, between frames.
func (e *Engine) RemoveTap(t Tap) {
	for i := range e.taps {
		if e.taps[i].tap == t {
			e.taps = append(e.taps[:i], e.taps[i+1:]...)
			return
		}
	}
}

// tapReceived shows a frame that is about to be handled.
func (e *Engine) tapReceived(n *netPort, p *port.Packet) {
	e.note = ""
	e.sight = n.sight(p.Data, false)
	for i := range e.taps {
		e.taps[i].waits = e.taps[i].tap.Begin(&e.sight)
	}
}

// tapHandled tells what became of it.
func (e *Engine) tapHandled() {
	for i := range e.taps {
		if e.taps[i].waits {
			e.taps[i].waits = false
			e.taps[i].tap.End(e.note)
		}
	}
}

// tapSent shows a frame that waits for the port to take it.
func (e *Engine) tapSent(n *netPort, frame []byte) {
	e.show(n.sight(frame, true))
}

func (e *Engine) show(s Sight) {
	e.sight = s
	for i := range e.taps {
		if e.taps[i].tap.Begin(&e.sight) {
			e.taps[i].tap.End("")
		}
	}
}

// sight finds out whose a frame is.
func (n *netPort) sight(frame []byte, out bool) Sight {
	s := Sight{Dev: n.dev, Out: out, Frame: frame}
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
	case wire.EtherTypeIPv4:
	default:
		s.Alien = true
		return s
	}
	s.OurIP, s.PeerIP, s.OurPort, s.PeerPort = f.DstIP, f.SrcIP, f.DstPort, f.SrcPort
	if out {
		s.OurIP, s.PeerIP, s.OurPort, s.PeerPort = f.SrcIP, f.DstIP, f.SrcPort, f.DstPort
	}
	s.Alien = s.OurIP != n.addr.IP() || f.Proto != wire.ProtoUDP && f.Proto != wire.ProtoICMP
	if f.Proto == wire.ProtoUDP && !s.Alien {
		s.Conn = n.conns[s.OurPort]
	}
	return s
}

func (s *Sight) sightARP(b []byte) {
	var a wire.ARP
	if _, err := a.Parse(b); err != nil {
		return
	}
	s.OurIP, s.PeerIP = a.TargetIP, a.SenderIP
	if s.Out {
		s.OurIP, s.PeerIP = a.SenderIP, a.TargetIP
	}
}

// badFrame counts a frame that is dropped because its bytes are wrong.
func (e *Engine) badFrame(why string) {
	e.Stats.BadFrames[why]++
	e.note = "dropped: " + why
}

// stray counts a packet that can't be the peer's.
func (e *Engine) stray(why string) {
	e.Stats.StrayAddress++
	e.note = "dropped: " + why
}

func (e *Engine) badAck() {
	e.Stats.BadAck++
	e.note = "dropped: acknowledges what was not sent"
}
