package datagram

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Form is a packet format for messages of queue pairs of types UD and UC. The package of the wire protocol
// implements it; that package also parses received packets and calls Port.Arrived or Port.UC.
//
// Lengths are those of the UDP payload.
type Form interface {
	// Port is the source and destination UDP port number of packets.
	Port() uint16

	// Len is the length of the packet for a message of type UD that has n bytes.
	Len(m Message, n uint32) int
	// Put writes that packet without the message, and returns the offset of the message.
	Put(b []byte, m Message, n uint32) (at int)

	// PartLen is the greatest number of bytes of a message of type UC in one packet. The port sends packets
	// of up to room bytes.
	PartLen(q *qp.QP, write bool, room int) uint32
	// PutPart writes a packet for n bytes of a message of type UC, without these bytes. It returns their
	// offset and the length of the packet. whole is the length of the message.
	PutPart(b []byte, p Part, n, whole uint32) (at, length int)

	// NewFlow is called for each queue pair; nil: the format keeps no state per queue pair.
	NewFlow() Flow
}

// Message is the header of a message of type UD, in any format.
type Message struct {
	PSN          wire.PSN // counts the sender's messages
	Dst, Src     wire.QPN
	QKey         uint32
	Immediate    uint32 // as stored by the program, in network byte order
	HasImmediate bool
	Solicited    bool
}

// Part is the header of a packet of type UC, in any format. A message is one packet, or several with
// consecutive PSNs.
type Part struct {
	PSN         wire.PSN
	Dst, Src    wire.QPN
	First, Last bool      // first or last packet of the message
	Write       bool      // packet of an RDMA Write, otherwise of a Send
	STag        wire.STag // Write
	TO          uint64    // Write: destination of the packet's payload
	Immediate   uint32    // as stored by the program, in network byte order; used in the last packet

	HasImmediate bool
	Solicited    bool
}

// Flow is the state that a format keeps for the messages of one queue pair.
type Flow interface {
	// Class is the traffic class of packets whose program wants the class wanted.
	Class(wanted uint8) uint8
	// Holds returns until when nothing may be sent; ok is false if a packet may be sent now.
	Holds(now clock.Time) (until clock.Time, ok bool)
	// Leaves prepares a path for a packet of n bytes, which is sent now to a queue pair.
	Leaves(now clock.Time, path *netif.Path, to wire.QPN, n int, class uint8)
}

// Speak replaces the port's format, which is initially that of NewStack; call it before the first Poll.
func (p *Port) Speak(f Form) { p.form = f }

// class returns the traffic class that a packet with the message of a work request has or would have.
func (p *Pair) class(wr *qp.SendWR) uint8 {
	if p.flow == nil {
		return 0
	}
	return p.flow.Class(uint8(wr.RKey))
}

// Flow returns the flow of the port's queue pair with a number, nil if there is none. uc is that queue pair
// if it has type UC.
func (p *Port) Flow(n wire.QPN) (f Flow, uc *UC) {
	if uc := p.s.ucs[n]; uc != nil && uc.port == p {
		return uc.flow, uc
	}
	if pair := p.s.pairs[n]; pair != nil && pair.port == p {
		return pair.flow, nil
	}
	return nil, nil
}
