package datagram

import (
	"net/netip"

	"urdma/wire"
)

// This file has management datagrams (MADs): messages between the queue pairs 1 of two
// ports, which no program has (docs/WIRE.md chapter 10).

// SendManagement sends a MAD from a device's port to a host, or to a group of all. It is lost
// where nobody answers, where the port is full, and where it has a form of its own.
func (s *Stack) SendManagement(dev int, dst netip.Addr, mad []byte) {
	p := s.ports[dev]
	if p.form != s.form || len(mad) > p.If.MaxDatagram() || s.portAt(dst) != nil {
		return
	}
	w := p.way(dst)
	if w == nil {
		return
	}
	m, n := Message{Dst: wire.GeneralQPN, Src: wire.GeneralQPN, QKey: wire.GeneralQKey}, uint32(len(mad))
	b := make([]byte, p.form.Len(m, n))
	copy(b[p.form.Put(b, m, n):], mad)
	if pending := (packet{payload: b, to: wire.GeneralQPN}); w.open {
		p.sendCopy(w, pending)
	} else if p.hasRoom(w, len(b)) {
		p.keep(w, pending)
	}
}

// management hands a MAD up; else it says why not.
func (s *Stack) management(p *Port, a *arrival, mad []byte) (why string) {
	switch {
	case s.Management == nil || a.Src != wire.GeneralQPN:
		s.Stats.NoQueuePair++
		return whyNobody
	case a.QKey != wire.GeneralQKey:
		s.Stats.WrongQKey++
		return whyNobody
	}
	s.Management(p.If.Dev, a.src, mad)
	return ""
}
