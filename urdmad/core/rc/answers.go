package rc

import "urdma/wire/roce"

// answer is the response to a Read or an atomic, sent or still to send. It is kept until enough later
// answers show that the peer has received it: until then the peer may repeat its request.
type answer struct {
	first   Sequence // number of the first packet that answers the request
	packets uint32
	length  uint32 // of the whole answer, in bytes
	va      uint64
	rkey    uint32
	atomic  bool

	open   bool   // packets are still to be sent
	before bool   // the whole answer was sent once before
	next   uint32 // next packet to send
	// The requested part: a peer that has received some packets requests the rest.
	from, until uint32
	asked       uint32 // length of the requested part, in bytes
}

// answers is a ring: the newest answer is at tail-1. A slot's number is its index & mask.
type answers struct {
	ring       []answer
	mask       int
	tail       int
	limit      int
	open, once int // answers with packets to be sent; answers that were never sent whole
}

func (v *answers) init(limit int) {
	size := 1
	for size < limit {
		size *= 2
	}
	*v = answers{mask: size - 1, limit: limit}
}

func (v *answers) at(i int) *answer { return &v.ring[i&v.mask] }

// room reports whether the peer may request another.
func (v *answers) room() bool { return v.once < v.limit }

// owe appends the answer to the request at s, and returns how many sequence numbers it uses.
func (v *answers) owe(s Sequence, a *Arrival, mtu uint32) Sequence {
	if v.ring == nil {
		v.ring = make([]answer, v.mask+1)
	}
	n := answer{first: s, packets: 1, length: a.Length, va: a.VA, rkey: a.RKey, atomic: a.Opcode != roce.ReadRequest}
	if !n.atomic {
		n.packets = packets(a.Length, mtu)
	}
	n.open, n.until, n.asked = true, n.packets, n.length
	if old := v.at(v.tail); old.open { // the peer's request shows that it has the old answer
		v.open--
	}
	*v.at(v.tail) = n
	v.tail++
	v.open++
	v.once++
	return Sequence(n.packets)
}

// oldest returns the index of the oldest answer in the ring.
func (v *answers) oldest() int { return max(0, v.tail-len(v.ring)) }

// after returns the first sequence number of the first answer after s if it is before limit, else limit.
func (v *answers) after(s, limit Sequence) Sequence {
	for i := v.oldest(); i < v.tail; i++ {
		if v.at(i).first > s {
			return v.at(i).first
		}
	}
	return limit
}

// packets returns how many packets answer a Read of a length.
func packets(length, mtu uint32) uint32 {
	return max(1, uint32((uint64(length)+uint64(mtu)-1)/uint64(mtu)))
}

// find returns the slot of the answer to an earlier request, or of an answer that contains the requested
// part; ok is false if there is none.
func (v *answers) find(s Sequence, a *Arrival, mtu uint32) (slot int, ok bool) {
	for i := v.oldest(); i < v.tail; i++ {
		n := v.at(i)
		if s < n.first || s >= n.first+Sequence(n.packets) {
			continue
		}
		skipped := uint64(s-n.first) * uint64(mtu)
		if n.atomic != (a.Opcode != roce.ReadRequest) || !n.atomic && (a.RKey != n.rkey || a.VA != n.va+skipped ||
			uint64(a.Length)+skipped > uint64(n.length) || a.Size != 0) {
			return 0, false
		}
		return i & v.mask, true
	}
	return 0, false
}

// Repeated answers again, from a slot, the request for which Judge returned Answer: only the requested
// part.
func (r *Responder) Repeated(a *Arrival, slot int) {
	v := &r.answers
	n := &v.ring[slot]
	if !n.open {
		n.open = true
		v.open++
	}
	n.from = uint32(r.expected.near(a.PSN) - n.first)
	n.next, n.until, n.asked = n.from, n.from+1, a.Length
	if !n.atomic {
		n.until = n.from + packets(a.Length, r.mtu)
	}
}

// Packet is a packet that answers a Read or an atomic.
type Packet struct {
	Slot   int
	Atomic bool
	Opcode roce.Opcode // operation
	PSN    roce.PSN
	MSN    uint32
	Offset uint32 // of its bytes, relative to the start of the requested part
	Length uint32
	Last   bool // last packet of the requested part
}

// NextAnswer returns the next packet of an answer; ok is false if there is none to send. The caller calls
// Answered once the packet is sent.
func (r *Responder) NextAnswer() (p Packet, ok bool) {
	v := &r.answers
	if v.open == 0 {
		return p, false
	}
	i := v.oldest()
	for !v.at(i).open {
		i++
	}
	n := v.at(i)
	p = Packet{Slot: i & v.mask, Atomic: n.atomic, PSN: (n.first + Sequence(n.next)).PSN(), MSN: r.msn & (1<<24 - 1),
		Offset: (n.next - n.from) * r.mtu, Last: n.next+1 == n.until}
	if n.atomic {
		p.Opcode = roce.AtomicAcknowledge
		return p, true
	}
	p.Length = min(r.mtu, n.asked-p.Offset)
	switch first := n.next == n.from; {
	case first && p.Last:
		p.Opcode = roce.ResponseOnly
	case first:
		p.Opcode = roce.ResponseFirst
	case p.Last:
		p.Opcode = roce.ResponseLast
	default:
		p.Opcode = roce.ResponseMiddle
	}
	return p, true
}

// Answered records that the packet returned by NextAnswer was sent.
func (r *Responder) Answered(p *Packet) {
	v := &r.answers
	for i := v.oldest(); i < v.tail; i++ {
		n := v.at(i)
		if i&v.mask != p.Slot {
			continue
		}
		if n.next++; n.next == n.until {
			n.open = false
			v.open--
			if !n.before {
				n.before = true
				v.once--
			}
		}
		return
	}
}

// Owed returns how many Reads and atomics have answers with packets to be sent.
func (r *Responder) Owed() int { return r.answers.open }

// owed returns the first sequence number whose answer is not sent, or limit if there is none before it.
func (v *answers) owed(limit Sequence) Sequence {
	if v.open == 0 {
		return limit
	}
	for i := v.oldest(); i < v.tail; i++ {
		if n := v.at(i); n.open {
			return min(limit, n.first+Sequence(n.next))
		}
	}
	return limit
}
