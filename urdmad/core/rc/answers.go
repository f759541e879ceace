package rc

import "urdma/wire/roce"

// answer is what the peer is owed, or was given, for a Read or an atomic. It is kept
// until so many others have come that the peer must have it: until then it may ask again.
type answer struct {
	first   Sequence // of all the packets that the request asked for
	packets uint32
	length  uint32 // bytes
	va      uint64
	rkey    uint32
	atomic  bool

	open   bool   // there are packets to be sent
	before bool   // it was answered whole before
	next   uint32 // packet
	// Of what is being answered: a peer that has part of it asks for the rest.
	from, until uint32
	asked       uint32 // bytes
}

// answers is a ring: the last of them are at tail-1. A slot's number is an index & mask.
type answers struct {
	ring       []answer
	mask       int
	tail       int
	limit      int
	open, once int // answers with packets to be sent; of them, those never answered whole
}

func (v *answers) init(limit int) {
	size := 1
	for size < limit {
		size *= 2
	}
	*v = answers{mask: size - 1, limit: limit}
}

func (v *answers) at(i int) *answer { return &v.ring[i&v.mask] }

// room reports whether the peer may ask for another.
func (v *answers) room() bool { return v.once < v.limit }

// owe appends the answer to the request at s, and returns how many numbers it takes.
func (v *answers) owe(s Sequence, a *Arrival, mtu uint32) Sequence {
	if v.ring == nil {
		v.ring = make([]answer, v.mask+1)
	}
	n := answer{first: s, packets: 1, length: a.Length, va: a.VA, rkey: a.RKey, atomic: a.Opcode != roce.ReadRequest}
	if !n.atomic {
		n.packets = packets(a.Length, mtu)
	}
	n.open, n.until, n.asked = true, n.packets, n.length
	if old := v.at(v.tail); old.open { // the peer asks for more than before: it has this one
		v.open--
	}
	*v.at(v.tail) = n
	v.tail++
	v.open++
	v.once++
	return Sequence(n.packets)
}

// oldest is the index of the oldest answer in the ring.
func (v *answers) oldest() int { return max(0, v.tail-len(v.ring)) }

// after is the first number behind s that an answer begins with, if s lies before it;
// else limit.
func (v *answers) after(s, limit Sequence) Sequence {
	for i := v.oldest(); i < v.tail; i++ {
		if v.at(i).first > s {
			return v.at(i).first
		}
	}
	return limit
}

// packets is how many a Read of so many bytes is answered with.
func packets(length, mtu uint32) uint32 {
	return max(1, uint32((uint64(length)+uint64(mtu)-1)/uint64(mtu)))
}

// find is the slot of the answer to a request that came before, or to a part of it; ok is
// false if there is none.
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

// Repeated: the request that Judge has named for Answer is to be answered again from a slot,
// as far as it asks.
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

// Packet is one that answers a Read or an atomic.
type Packet struct {
	Slot   int
	Atomic bool
	Opcode roce.Opcode // operation
	PSN    roce.PSN
	MSN    uint32
	Offset uint32 // of its bytes, from where the request asked
	Length uint32
	Last   bool // of what the request asked for
}

// NextAnswer is the packet of an answer to be sent next; ok is false if none is owed.
// Answered notes that it left.
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

// Answered notes that the packet which NextAnswer has named left.
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

// Owed is how many Reads and atomics have answers that are not all sent.
func (r *Responder) Owed() int { return r.answers.open }

// owed is the first number whose answer is not sent; limit if there is none before it.
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
