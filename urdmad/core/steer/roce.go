package steer

import (
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// packet returns the worker for a RoCEv2 packet, which is sent to UDP port number 4791.
func (h *Hub) packet(b []byte, group bool) int {
	var head roce.Header
	var private [roce.MaxHeaderLen]byte
	from, to, err := head.Payload(private[:copy(private[:], b)], len(b))
	switch {
	case err != nil:
		return first
	case group:
		return everyone
	case head.Dst == ibcm.QP:
		return h.management(b[from:to])
	}
	return h.pair(head.Dst)
}

// manages reports whether a packet of the port has a message of RoCEv2's communication management. TRP has none: what
// ends its connections arrives where their data arrives.
func (p *Port) manages(b []byte) bool {
	if !p.roce {
		return false
	}
	if !p.info.Datagrams {
		if b = datagramIn(b); len(b) < wire.UDPLen {
			return false
		}
		b = b[wire.UDPLen:]
	}
	n, ok := destinationPair(b)
	return ok && wire.QPN(n) == ibcm.QP
}

// management returns the worker for a message of communication management: for a request or a question, the
// worker with the port number; for any other message, the worker that chose the ID in it.
func (h *Hub) management(b []byte) int {
	var private [ibcm.Len]byte
	var m ibcm.Message
	if m.Parse(private[:copy(private[:], b)]) != nil {
		return first
	}
	switch m.Kind {
	case ibcm.REQ:
		if number, ok := m.Service.TCPPort(); ok {
			return h.numbers.of(number)
		}
	case ibcm.SIDRRequest:
		if number, ok := m.Service.UDPPort(); ok {
			return h.numbers.of(number)
		}
	case ibcm.SIDRReply:
		asking, _ := ibcm.Numbers(m.TID)
		return h.numbers.of(asking)
	default:
		if m.Remote == 0 { // its sender withdraws a request, and does not know our ID
			return everyone
		}
		return wire.WorkerOf(m.Remote, h.workers)
	}
	return first
}
