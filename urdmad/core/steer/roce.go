package steer

import (
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// packet is the worker that a RoCEv2 packet is for, as sent to UDP port number 4791.
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

// management is the worker that a message of communication management is for: a request or a
// question is for the one with the port number, all else for the one that drew the ID which it
// repeats.
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
		if m.Remote == 0 { // its sender gives up a request, and has not heard of our ID
			return everyone
		}
		return wire.WorkerOf(m.Remote, h.workers)
	}
	return first
}
