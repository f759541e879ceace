package rc

import (
	"urdma/urdmad/core/clock"
	"urdma/wire/roce"
)

// Kind is what a message asks for.
type Kind uint8

// Kinds of messages.
const (
	Data   Kind = iota // a Send or a Write: each of its packets carries a part
	Read               // the responder's packets do
	Atomic             // likewise, one
)

// Config is what is agreed on for a connection.
type Config struct {
	PSN     roce.PSN // of the first request
	MTU     uint32   // bytes of payload of every packet but a message's last
	Window  int      // packets under way at most; 0: as the package has it
	Reads   int      // requests for Reads and atomics that the responder serves at a time
	Timeout clock.Time
	// Retries are how often in a row the time-out may pass without an answer, RNRRetries
	// how often a message may find its receiver not ready; NoLimit stands for ever.
	Retries, RNRRetries int
}

// NoLimit is the number of tries that have no end.
const NoLimit = -1

// message is one of ours that is not all acknowledged.
type message struct {
	token   uint32
	kind    Kind
	length  uint32
	first   Sequence
	packets uint32
}

func (m *message) end() Sequence { return m.first + Sequence(m.packets) }

// Request is a packet to be sent.
type Request struct {
	Token       uint32 // of the message, as Begin named it
	Kind        Kind
	PSN         roce.PSN
	Offset      uint32 // in the message, of the packet's part, or of what a Read asks for
	Length      uint32 // of that
	First, Last bool   // packet of the message, of one that carries data
	Again       bool   // it was sent before
	Missed      bool   // likewise, and the peer has said that it or what was sent before it is missing
	AckReq      bool

	at, next Sequence
}

// End is the number behind the packet, or behind the last that answers it.
func (r *Request) End() uint64 { return uint64(r.next) }

// Requester is the sending side of a connection.
type Requester struct {
	cfg      Config
	messages []message // from the oldest that is not all acknowledged; messages[head:] count
	head     int
	acked    Sequence // all before it were carried out, or answered
	next     Sequence // to be sent
	sent     Sequence // all before it were sent at least once
	end      Sequence // of all messages
	reads    int      // requests for Reads and atomics sent, and not all answered
	unasked  int      // packets since an acknowledgement was asked for
	window   window
	loss     loss

	Stats *Stats
}

// Stats counts over all connections that share it.
type Stats struct {
	Sent       uint64 `counter:"roce_requests_sent"`
	SentAgain  uint64 `counter:"roce_requests_sent_again"`
	Timeouts   uint64 `counter:"roce_timeouts"`
	NAKs       uint64 `counter:"roce_sequence_errors_heard"`
	Gaps       uint64 `counter:"roce_answers_missing"`
	RNRHeard   uint64 `counter:"roce_not_ready_heard"`
	RNRSaid    uint64 `counter:"roce_not_ready_said"`
	NAKSaid    uint64 `counter:"roce_sequence_errors_said"`
	Duplicates uint64 `counter:"roce_duplicate_requests"`
	Ghosts     uint64 `counter:"roce_ghost_packets"`
}

// Init begins a connection.
func (r *Requester) Init(c Config, stats *Stats) {
	first := sequenceOf(c.PSN)
	*r = Requester{cfg: c, acked: first, next: first, sent: first, end: first, Stats: stats}
	r.window.init(c.Window)
	r.loss.init()
}

// Limits changes what Config has of time and tries.
func (r *Requester) Limits(timeout clock.Time, retries, rnrRetries int) {
	r.cfg.Timeout, r.cfg.Retries, r.cfg.RNRRetries = timeout, retries, rnrRetries
}

// Packets is how many packets a message of a length takes, or its answer.
func (r *Requester) Packets(length uint32) uint32 {
	return max(1, uint32((uint64(length)+uint64(r.cfg.MTU)-1)/uint64(r.cfg.MTU)))
}

// Begin appends a message. It may be called when Waiting is false. The number behind its
// last packet is returned.
func (r *Requester) Begin(token uint32, kind Kind, length uint32) (end uint64) {
	m := message{token: token, kind: kind, length: length, first: r.end, packets: r.Packets(length)}
	if r.head > 0 && len(r.messages) == cap(r.messages) {
		n := copy(r.messages, r.messages[r.head:])
		r.messages, r.head = r.messages[:n], 0
	}
	r.messages = append(r.messages, m)
	r.end = m.end()
	return uint64(r.end)
}

// Waiting reports whether packets of messages that have begun are still to be sent, for
// the first time or again.
func (r *Requester) Waiting() bool { return r.next != r.end }

// Idle reports whether nothing is under way or to be sent.
func (r *Requester) Idle() bool { return r.acked == r.end }

// Acked is the number behind the last packet that was carried out, or answered.
func (r *Requester) Acked() uint64 { return uint64(r.acked) }

// at is the message with a number. There is one: it is between acked and end.
func (r *Requester) at(s Sequence) *message {
	low, high := r.head, len(r.messages)
	for low+1 < high {
		if middle := int(uint(low+high) >> 1); r.messages[middle].first <= s {
			low = middle
		} else {
			high = middle
		}
	}
	return &r.messages[low]
}

// Next is the packet to be sent next; ok is false if there is none, or if it must wait.
func (r *Requester) Next(now clock.Time) (p Request, ok bool) {
	if r.next == r.end || r.next-r.acked >= Sequence(r.window.size) || now < r.loss.pause || r.loss.asks(r.acked) {
		return p, false
	}
	m := r.at(r.next)
	if m.kind != Data && r.reads >= r.cfg.Reads {
		return p, false
	}
	p.Token, p.Kind, p.PSN, p.at, p.Again = m.token, m.kind, r.next.PSN(), r.next, r.next < r.sent
	n := uint32(r.next - m.first)
	p.Missed = p.Again && r.loss.missed
	p.Offset = n * r.cfg.MTU
	switch packets := uint32(1); m.kind {
	case Data:
		p.Length = min(r.cfg.MTU, m.length-p.Offset)
		p.First, p.Last = n == 0, n+1 == m.packets
		p.AckReq = p.Last || r.unasked+1 >= r.window.size/4 || r.loss.asking
		p.next = r.next + 1
	case Read: // parts begin where they did the first time
		packets = min(readPackets-n%readPackets, m.packets-n)
		p.Length = min(packets*r.cfg.MTU, m.length-p.Offset)
		p.next = r.next + Sequence(packets)
	default:
		p.Length = m.length
		p.next = r.next + 1
	}
	return p, true
}

// Sent notes that the packet which Next has named left.
func (r *Requester) Sent(now clock.Time, p *Request) {
	r.Stats.Sent++
	if p.Again {
		r.Stats.SentAgain++
	}
	if r.sent == r.acked { // nothing was under way
		r.loss.begin(now)
	}
	if !p.Again && (p.AckReq || p.Kind != Data) {
		r.loss.measure(p.next, now)
	}
	r.unasked++
	if p.AckReq {
		r.unasked = 0
	}
	if p.Kind != Data {
		r.reads++
		r.unasked = 0
	}
	if l := &r.loss; l.asking && l.asked == 0 {
		l.asked = p.next
	} else {
		l.asking = false
	}
	r.next = p.next
	r.sent = max(r.sent, r.next)
}

// advance notes that all before s were carried out, or answered.
func (r *Requester) advance(now clock.Time, s Sequence) {
	if s <= r.acked {
		return
	}
	r.window.arrived(int(s - r.acked))
	if r.loss.asking {
		r.answered(s)
	}
	r.acked = s
	r.next = max(r.next, s) // what was to be sent again has arrived
	for r.head < len(r.messages) && r.messages[r.head].end() <= s {
		r.head++
	}
	if r.head == len(r.messages) {
		r.messages, r.head = r.messages[:0], 0
	}
	r.loss.progress(now, s)
}

// Failure is the end of a connection that the requester finds.
type Failure uint8

// Failures.
const (
	None           Failure = iota
	NoAnswer               // the retries are used up
	NotReady               // those for a receiver that is not ready
	InvalidRequest         // NAKs of the responder, about the message Token
	AccessError
	OperationalError
)

// Heard is what came of an acknowledgement or a response.
type Heard struct {
	Failure Failure
	Token   uint32 // of the message that failed
	// Of a response: Take says that its data belong at Offset of the answer to Token, and
	// Done that they are the last of it.
	Take, Done bool
	Offset     uint32
	// Refused: what came can't be an answer of the peer's. It is dropped.
	Refused bool
}

// firstUnanswered is the first number from acked up to limit whose request has an answer
// that is not all here; limit if there is none.
func (r *Requester) firstUnanswered(limit Sequence) Sequence {
	for i := r.head; i < len(r.messages); i++ {
		m := &r.messages[i]
		switch {
		case m.first >= limit:
			return limit
		case m.kind != Data:
			return max(m.first, r.acked)
		}
	}
	return limit
}

// plausible turns the PSN of an answer into a number, and says whether something with
// that number is under way, or behind is the last that was acknowledged.
func (r *Requester) plausible(p roce.PSN) (s Sequence, ok bool) {
	s = r.acked.near(p)
	return s, s+1 >= r.acked && s < r.sent
}

// Acknowledgement takes an acknowledgement packet.
func (r *Requester) Acknowledgement(now clock.Time, p roce.PSN, syndrome roce.Syndrome) (h Heard) {
	s, ok := r.plausible(p)
	if !ok {
		r.Stats.Ghosts++
		return Heard{Refused: true}
	}
	switch syndrome.Kind() {
	case roce.ACK:
		// One that passes over a Read which has no answer says that the answer is lost
		// (InfiniBand vol. 1).
		have := r.firstUnanswered(s + 1)
		r.advance(now, have)
		if have <= s {
			r.gap(now)
		}
		return h
	case roce.RNR, roce.NAK:
		if s < r.acked || syndrome > roce.NAKOperational {
			r.Stats.Ghosts++
			return Heard{Refused: true}
		}
		if have := r.firstUnanswered(s); have < s {
			r.advance(now, have)
			r.gap(now)
			return h
		}
		r.advance(now, s)
		return r.refused(now, s, syndrome)
	}
	return Heard{Refused: true}
}

// refused takes a NAK of the packet s, the oldest that is not acknowledged.
func (r *Requester) refused(now clock.Time, s Sequence, syndrome roce.Syndrome) (h Heard) {
	h.Token = r.at(s).token
	switch {
	case syndrome.Kind() == roce.RNR:
		r.Stats.RNRHeard++
		if !r.loss.notReady(now, s, clock.Time(syndrome.RNRTimer()), r.cfg.RNRRetries) {
			h.Failure = NotReady
		}
		r.goBack()
	case syndrome == roce.NAKSequence:
		r.Stats.NAKs++
		r.window.lost(s, r.sent)
		r.goBack()
		r.loss.missed = true
	case syndrome == roce.NAKInvalid:
		h.Failure = InvalidRequest
	case syndrome == roce.NAKAccess:
		h.Failure = AccessError
	default:
		h.Failure = OperationalError
	}
	return h
}

// Response takes a packet that answers a Read or an atomic, of n bytes of payload. What
// it says to take has to be taken, or the connection ends.
func (r *Requester) Response(now clock.Time, p roce.PSN, n uint32) (h Heard) {
	s, ok := r.plausible(p)
	if !ok || s < r.acked {
		r.Stats.Ghosts++
		return Heard{Refused: true}
	}
	m := r.at(s)
	at := uint32(s-m.first) * r.cfg.MTU
	if m.kind == Data || m.kind == Read && n != min(r.cfg.MTU, m.length-at) {
		return Heard{Refused: true}
	}
	if have := r.firstUnanswered(s); have < s {
		r.advance(now, have)
		r.gap(now)
		return h
	}
	h = Heard{Take: true, Token: m.token, Offset: at, Done: s+1 == m.end()}
	part := uint32(s+1-m.first) % readPackets // 0: the last of its part
	if (h.Done || m.kind == Atomic || part == 0) && r.reads > 0 {
		r.reads--
	}
	r.advance(now, s+1)
	return h
}

// KindAt is what the message asks for to which the answer p belongs; ok is false if none
// is under way.
func (r *Requester) KindAt(p roce.PSN) (kind Kind, ok bool) {
	s, ok := r.plausible(p)
	if !ok || s < r.acked {
		return Data, false
	}
	return r.at(s).kind, true
}
