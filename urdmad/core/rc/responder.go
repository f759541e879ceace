package rc

import "urdma/wire/roce"

// Judgement says how to handle a request that has arrived.
type Judgement uint8

// Judgements.
const (
	Drop    Judgement = iota // do nothing; Reply may have an acknowledgement
	Deliver                  // execute it, then call Delivered, NotReady or Refuse, or nothing to treat it as lost
	Answer                   // repeat a Read or an atomic's result, then call Repeated or Refuse, or nothing
)

// Arrival is a request that has arrived.
type Arrival struct {
	Opcode roce.Opcode // operation
	PSN    roce.PSN
	Size   uint32 // bytes of payload
	VA     uint64 // address of a Read
	Length uint32 // bytes of a Read, or of the whole Write in a Write's first packet
	RKey   uint32
	AckReq bool
}

// incoming is the peer's message that is arriving.
type incoming struct {
	traits roce.Traits // Send or Write; 0: none is arriving
	rest   uint32      // of a Write: bytes not received yet
}

// Responder is the receiving side of a connection.
type Responder struct {
	mtu      uint32
	expected Sequence
	msn      uint32
	in       incoming
	nakSent  bool // a NAK told the peer from where to send again
	answers  answers
	reply    reply

	Stats *Stats
}

// Init starts a connection: first is the PSN of the peer's first request, reads how many Reads and atomics
// it may have outstanding.
func (r *Responder) Init(first roce.PSN, mtu uint32, reads int, stats *Stats) {
	*r = Responder{mtu: mtu, expected: sequenceOf(first), Stats: stats}
	r.answers.init(max(reads, 1))
}

// Expected returns the number of the next request in order.
func (r *Responder) Expected() uint64 { return uint64(r.expected) }

// farthest is the distance from the next request in order, in packets, from which on a request draws no
// NAK. Peers have fewer packets in flight; a stranger who guesses PSNs draws fewer NAKs. A peer whose lost
// request was for a longer Read notices the loss by its time-out.
const farthest = 1 << 16

// Judge decides how to handle a request. For Answer and for Deliver of a Read or atomic, slot is the slot
// of its answer.
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

// wrong checks a request's place in its message and its length, and returns the NAK code to refuse it with,
// or 0.
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

// tooFar reports whether a request follows more unanswered Read packets than PSNs can distinguish, half of
// the PSN space (InfiniBand vol. 1).
func (r *Responder) tooFar(a *Arrival) bool {
	n := Sequence(1)
	if a.Opcode == roce.ReadRequest {
		n = Sequence(packets(a.Length, r.mtu))
	}
	return r.expected+n-r.answers.owed(r.expected) > base/2
}

// maxMessage is the greatest length of a message.
const maxMessage = 1 << 31

func (r *Responder) wrongRead(a *Arrival) roce.Syndrome {
	if a.Size != 0 || a.Length > maxMessage || !r.answers.room() {
		return roce.NAKInvalid
	}
	return 0
}

// Rest returns how many bytes of the peer's Write are outstanding, including the packet being delivered.
func (r *Responder) Rest(a *Arrival) uint32 {
	if a.Opcode.Traits().Is(roce.First) {
		return a.Length
	}
	return r.in.rest
}

// Delivered records that the request for which Judge returned Deliver was executed.
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
	if r.nakSent { // the packets after the gap may follow at once
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

// NotReady records that the request found no receive and is to be sent again after a time.
func (r *Responder) NotReady(timer uint8) {
	r.nakSent = true
	r.Stats.RNRSaid++
	r.reply.refuse(r.expected, roce.NotReady(timer))
}

// Refuse refuses the request p permanently; it may be an earlier request. Its answer, and answers after it,
// are not sent any more.
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

// duplicate handles a request that was executed before.
func (r *Responder) duplicate(s Sequence, a *Arrival) (Judgement, int) {
	r.Stats.Duplicates++
	if a.Opcode.Traits()&(roce.Send|roce.Write) != 0 {
		// Answers after it are still to be sent, or the peer has lost them.
		r.reply.repeat(r.answers.after(s, r.expected))
		return Drop, 0
	}
	slot, ok := r.answers.find(s, a, r.mtu)
	if !ok {
		return Drop, 0
	}
	return Answer, slot
}

// Slots returns how many answers are kept; Judge and NextAnswer number their slots from 0.
func (r *Responder) Slots() int { return r.answers.mask + 1 }
