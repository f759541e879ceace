package rc

import "urdma/wire/roce"

// Judgement is what to do with a request that has arrived.
type Judgement uint8

// Judgements.
const (
	Drop    Judgement = iota // nothing, or an acknowledgement: Reply has it
	Deliver                  // carry it out, then call Delivered, NotReady or Refuse, or nothing if it is as good as lost
	Answer                   // carry an earlier Read out again, or repeat what an atomic has found, then call Repeated or Refuse, or nothing
)

// Arrival is a request that has arrived.
type Arrival struct {
	Opcode roce.Opcode // operation
	PSN    roce.PSN
	Size   uint32 // bytes of payload
	VA     uint64 // of a Read
	Length uint32 // of a Read, or of a Write's first packet: bytes of all of it
	RKey   uint32
	AckReq bool
}

// message of the peer's that is under way.
type incoming struct {
	traits roce.Traits // Send or Write; 0: none is
	rest   uint32      // of a Write: bytes to come
}

// Responder is the receiving side of a connection.
type Responder struct {
	mtu      uint32
	expected Sequence
	msn      uint32
	in       incoming
	nakSent  bool // the peer was told, by a NAK, from where to send again
	answers  answers
	reply    reply

	Stats *Stats
}

// Init begins a connection: first is the PSN of the peer's first request, reads how many
// of its Reads and atomics may be open.
func (r *Responder) Init(first roce.PSN, mtu uint32, reads int, stats *Stats) {
	*r = Responder{mtu: mtu, expected: sequenceOf(first), Stats: stats}
	r.answers.init(max(reads, 1))
}

// Expected is the number of the next request in order.
func (r *Responder) Expected() uint64 { return uint64(r.expected) }

// farthest is how far ahead of the next in order a request must be to draw no NAK, in
// packets. Peers have less under way; a stranger who guesses draws fewer. A peer that has
// asked for longer Reads, whose request was lost, notices by its time-out.
const farthest = 1 << 16

// Judge says what to do with a request. slot is that of the answer that a Read or an
// atomic is owed, for Answer and for Deliver.
func (r *Responder) Judge(a *Arrival) (do Judgement, slot int) {
	s := r.expected.near(a.PSN)
	switch {
	case s >= r.expected+farthest:
		r.Stats.Ghosts++
		return Drop, 0
	case s > r.expected:
		if !r.nakSent {
			r.nakSent = true
			r.Stats.NAKSaid++
			r.reply.refuse(r.expected, roce.NAKSequence)
		}
		return Drop, 0
	case s < r.expected:
		return r.duplicate(s, a)
	}
	if syndrome := r.wrong(a); syndrome != 0 {
		r.Refuse(a.PSN, syndrome)
		return Drop, 0
	}
	return Deliver, r.answers.tail & r.answers.mask
}

// wrong checks a request's place in its message and its length, and returns what it is
// refused with; 0: it is right.
func (r *Responder) wrong(a *Arrival) roce.Syndrome {
	t := a.Opcode.Traits()
	kind := t & (roce.Send | roce.Write)
	switch {
	case r.tooFar(a),
		t.Is(roce.First) != (r.in.traits == 0), r.in.traits != 0 && r.in.traits != kind:
		return roce.NAKInvalid
	case kind == 0:
		return r.wrongRead(a)
	case !t.Is(roce.Last) && a.Size != r.mtu, a.Size > r.mtu, t.Is(roce.Last) && !t.Is(roce.First) && a.Size == 0:
		return roce.NAKInvalid
	case !t.Is(roce.Write):
		return 0
	}
	rest := r.in.rest
	if t.Is(roce.First) {
		rest = a.Length
	}
	if a.Size > rest || t.Is(roce.Last) != (a.Size == rest) {
		return roce.NAKInvalid
	}
	return 0
}

// tooFar reports a request behind more unanswered packets of Reads than PSNs tell apart, half of
// what there are (InfiniBand vol. 1).
func (r *Responder) tooFar(a *Arrival) bool {
	n := Sequence(1)
	if a.Opcode == roce.ReadRequest {
		n = Sequence(packets(a.Length, r.mtu))
	}
	return r.expected+n-r.answers.owed(r.expected) > base/2
}

// maxMessage is the longest message.
const maxMessage = 1 << 31

func (r *Responder) wrongRead(a *Arrival) roce.Syndrome {
	if a.Size != 0 || a.Length > maxMessage || !r.answers.room() {
		return roce.NAKInvalid
	}
	return 0
}

// Rest is how many bytes of the peer's Write are still to come, those of the packet that
// is being delivered included.
func (r *Responder) Rest(a *Arrival) uint32 {
	if a.Opcode.Traits().Is(roce.First) {
		return a.Length
	}
	return r.in.rest
}

// Delivered: the request that Judge has named was carried out.
func (r *Responder) Delivered(a *Arrival) {
	t := a.Opcode.Traits()
	n := Sequence(1)
	switch kind := t & (roce.Send | roce.Write); {
	case kind == 0:
		n = r.answers.owe(r.expected, a, r.mtu)
	case t.Is(roce.Last):
		r.in = incoming{}
	default:
		r.in = incoming{kind, r.Rest(a) - a.Size}
	}
	r.expected += n
	if r.nakSent { // what is behind the gap may come with it
		r.nakSent = false
		r.reply.withdraw(r.expected)
	}
	if t.Is(roce.Last) {
		r.msn++
	}
	if a.AckReq && t&(roce.Send|roce.Write) != 0 {
		r.reply.acknowledge(r.expected)
	}
}

// NotReady: the request finds no receive, and is to come again after a time.
func (r *Responder) NotReady(timer uint8) {
	r.nakSent = true
	r.Stats.RNRSaid++
	r.reply.refuse(r.expected, roce.NotReady(timer))
}

// Refuse refuses the request p for good, or one that came before: what answers it, or what is
// behind it, is sent no more.
func (r *Responder) Refuse(p roce.PSN, syndrome roce.Syndrome) {
	v, at := &r.answers, r.expected.near(p)
	for i := v.oldest(); i < v.tail; i++ {
		if n := v.at(i); n.open && n.first+Sequence(n.until) > at {
			n.open = false
			v.open--
		}
	}
	r.nakSent = true
	r.reply = reply{due: true, to: at, said: r.reply.said, syndrome: syndrome, final: true}
}

// duplicate takes a request that was carried out before.
func (r *Responder) duplicate(s Sequence, a *Arrival) (Judgement, int) {
	r.Stats.Duplicates++
	if a.Opcode.Traits()&(roce.Send|roce.Write) != 0 {
		// Answers to what is behind it are still to come, or the peer has lost them.
		r.reply.repeat(r.answers.after(s, r.expected))
		return Drop, 0
	}
	slot, ok := r.answers.find(s, a, r.mtu)
	if !ok {
		return Drop, 0
	}
	return Answer, slot
}

// Slots is how many answers are kept; Judge and NextAnswer number them from 0.
func (r *Responder) Slots() int { return r.answers.mask + 1 }
