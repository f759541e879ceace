package datagram

import (
	"net/netip"

	"urdma/wire"
)

// This file has management datagrams (MADs): messages between the queue pairs 1 of two
// ports, which no program has (docs/WIRE.md chapter 10).

// SendManagement sends a MAD from a device's port to a host, or to a group of all. It is
// lost where nobody answers, or where the port is full or speaks RoCEv2.
func (s *Stack) SendManagement(dev int, dst netip.Addr, mad []byte) {
	p := s.ports[dev]
	if p.form != ours || len(mad) > p.If.MaxDatagram() || s.portAt(dst) != nil {
		return
	}
	w := p.way(dst)
	if w == nil {
		return
	}
	b := make([]byte, wire.DatagramLen+len(mad))
	h := wire.Datagram{Dst: wire.GeneralQPN, Src: wire.GeneralQPN, QKey: wire.GeneralQKey}
	h.Put(b)
	copy(b[wire.DatagramLen:], mad)
	if !w.open {
		if w.bytes+len(b) <= maxHeld && p.held+len(b) <= maxHeldAll {
			p.hold(w, held{payload: b})
		}
		return
	}
	if frame := p.If.Alloc(); frame != nil {
		copy(w.path.Payload(frame), b)
		s.Stats.Sent++
		w.path.Send(frame, len(b))
	}
}

// management hands a MAD up; else it says why not.
func (s *Stack) management(p *Port, a *arrival, mad []byte) (why string) {
	switch {
	case s.Management == nil || a.h.Src != wire.GeneralQPN:
		s.Stats.NoQueuePair++
		return whyNobody
	case a.h.QKey != wire.GeneralQKey:
		s.Stats.WrongQKey++
		return whyNobody
	}
	s.Management(p.If.Dev, a.src, mad)
	return ""
}
