package datagram

import (
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Form is how a wire carries messages of queue pairs of types UD and UC. The wire's package
// implements it; it takes apart what arrives, and calls Port.Arrived or Port.UC.
//
// Lengths of packets are those of UDP's payload.
type Form interface {
	// Port is the UDP port number that packets come from and go to.
	Port() uint16

	// Len is the length of the packet of a message of type UD that has n bytes.
	Len(m Message, n uint32) int
	// Put writes that packet, without the message, and returns where the message goes.
	Put(b []byte, m Message, n uint32) (at int)

	// PartLen is how many bytes of a message of type UC one packet carries at most. The port
	// sends packets of up to room bytes.
	PartLen(q *qp.QP, write bool, room int) uint32
	// PutPart writes a packet with n bytes of a message of type UC, without these bytes. It
	// returns where they go, and the length of the packet. The message has whole bytes.
	PutPart(b []byte, p Part, n, whole uint32) (at, length int)

	// NewFlow is called for each queue pair; nil: the form keeps nothing about queue pairs.
	NewFlow() Flow
}

// Message is the header of a message of type UD, whatever its form.
type Message struct {
	PSN          wire.PSN // counts the sender's messages
	Dst, Src     wire.QPN
	QKey         uint32
	Immediate    uint32 // as the program stored it: network byte order
	HasImmediate bool
	Solicited    bool
}

// Part is the header of a packet of type UC, whatever its form. A message has one packet, or
// several with consecutive PSNs.
type Part struct {
	PSN         wire.PSN
	Dst, Src    wire.QPN
	First, Last bool      // of the message
	Write       bool      // of an RDMA Write: else of a Send
	STag        wire.STag // Write
	TO          uint64    // Write: where the packet's payload goes
	Immediate   uint32    // as the program stored it: network byte order; counts in the last packet

	HasImmediate bool
	Solicited    bool
}

// Flow is what a form keeps about the messages of one queue pair.
type Flow interface {
	// Class is the traffic class of the packets of a program that wants one.
	Class(wanted uint8) uint8
	// Holds says until when nothing may leave; ok is false if something may.
	Holds(now clock.Time) (until clock.Time, ok bool)
	// Leaves readies a path for a packet of n bytes that leaves now for a queue pair.
	Leaves(now clock.Time, path *netif.Path, to wire.QPN, n int, class uint8)
}

// Speak gives the port another form than NewStack, before the first Poll.
func (p *Port) Speak(f Form) { p.form = f }

// class is the traffic class of the message of a work request, if it had a packet.
func (p *Pair) class(wr *qp.SendWR) uint8 {
	if p.flow == nil {
		return 0
	}
	return p.flow.Class(uint8(wr.RKey))
}

// Flow is the flow of the queue pair of the port that has a number, nil if there is none. uc
// is that queue pair if it is of type UC.
func (p *Port) Flow(n wire.QPN) (f Flow, uc *UC) {
	if uc := p.s.ucs[n]; uc != nil && uc.port == p {
		return uc.flow, uc
	}
	if pair := p.s.pairs[n]; pair != nil && pair.port == p {
		return pair.flow, nil
	}
	return nil, nil
}
