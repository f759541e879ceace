package rc

import (
	"urdma/urdmad/core/clock"
	"urdma/wire/roce"
)

// Kind is the type of a message.
type Kind uint8

// Kinds of messages.
const (
	Data   Kind = iota // a Send or a Write: each of its packets carries a part
	Read               // the responder's packets carry the data
	Atomic             // the responder's packet carries the result
)

// Config has the parameters of a connection.
type Config struct {
	PSN     roce.PSN // of our first request
	MTU     uint32   // payload of every packet except the last of a message, in bytes
	Window  int      // most packets in flight; 0: the package's default
	Reads   int      // Reads and atomics that the responder accepts at a time
	Timeout clock.Time
	// Retries is how often in a row the time-out may pass without an answer, RNRRetries how often a message
	// may find its receiver not ready; NoLimit means for ever.
	Retries, RNRRetries int
}

// NoLimit is the number of retries if they are unlimited.
const NoLimit = -1

// message is a message of ours that is not wholly acknowledged.
type message struct {
	token   uint32
	kind    Kind
	length  uint32
	first   Sequence
	packets uint32
}

func (m *message) end() Sequence { return m.first + Sequence(m.packets) }

// Request is a packet to send.
type Request struct {
	Token       uint32 // of the message, from Begin
	Kind        Kind
	PSN         roce.PSN
	Offset      uint32 // in the message: of the packet's data, or of the part that a Read requests
	Length      uint32 // of that data or part
	First, Last bool   // first or last packet of a message that carries data
	Again       bool   // it was sent before
	Missed      bool   // it was sent before, and the peer has reported it or an earlier packet missing
	AckReq      bool

	at, next Sequence
}

// End returns the number after the packet, or after the last packet that answers it.
func (r *Request) End() uint64 { return uint64(r.next) }

// Requester is the sending side of a connection.
type Requester struct {
	cfg      Config
	messages []message // from the oldest that is not wholly acknowledged; messages[head:] are in use
	head     int
	acked    Sequence // everything before it was executed or answered
	next     Sequence // next to be sent
	sent     Sequence // everything before it was sent at least once
	end      Sequence // end of all messages
	reads    int      // Reads and atomics sent and not wholly answered
	unasked  int      // packets since we last asked for an acknowledgement
	window   window
	loss     loss

	Stats *Stats
}

// Stats has counters of all connections that share it.
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

// Init starts a connection.
func (r *Requester) Init(c Config, stats *Stats) {
	first := sequenceOf(c.PSN)
	*r = Requester{cfg: c, acked: first, next: first, sent: first, end: first, Stats: stats}
	r.window.init(c.Window)
	r.loss.init()
}

// Limits changes the time-out and retries of Config.
func (r *Requester) Limits(timeout clock.Time, retries, rnrRetries int) {
	r.cfg.Timeout, r.cfg.Retries, r.cfg.RNRRetries = timeout, retries, rnrRetries
}

// Packets returns how many packets a message of a length, or its answer, takes.
func (r *Requester) Packets(length uint32) uint32 {
	return max(1, uint32((uint64(length)+uint64(r.cfg.MTU)-1)/uint64(r.cfg.MTU)))
}

// Begin appends a message and returns the number after its last packet. It may be called when Waiting
// returns false.
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

// Waiting reports whether packets of the current messages are still to be sent, for the first time or
// again.
func (r *Requester) Waiting() bool { return r.next != r.end }

// Idle reports whether nothing is in flight or waits to be sent.
func (r *Requester) Idle() bool { return r.acked == r.end }

// Acked returns the number after the last packet that was executed or answered.
func (r *Requester) Acked() uint64 { return uint64(r.acked) }

// at returns the message with a number, which must be between acked and end.
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

// Next returns the next packet to send; ok is false if there is none, or if it must wait.
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
	case Read: // parts begin where they began the first time
		packets = min(readPackets-n%readPackets, m.packets-n)
		p.Length = min(packets*r.cfg.MTU, m.length-p.Offset)
		p.next = r.next + Sequence(packets)
	default:
		p.Length = m.length
		p.next = r.next + 1
	}
	return p, true
}

// Sent records that the packet returned by Next was sent.
func (r *Requester) Sent(now clock.Time, p *Request) {
	r.Stats.Sent++
	if p.Again {
		r.Stats.SentAgain++
	}
	if r.sent == r.acked { // nothing was in flight
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

// advance records that everything before s was executed or answered.
func (r *Requester) advance(now clock.Time, s Sequence) {
	if s <= r.acked {
		return
	}
	r.window.arrived(int(s - r.acked))
	if r.loss.asking {
		r.answered(s)
	}
	r.acked = s
	r.next = max(r.next, s) // packets that were to be sent again have arrived
	for r.head < len(r.messages) && r.messages[r.head].end() <= s {
		r.head++
	}
	if r.head == len(r.messages) {
		r.messages, r.head = r.messages[:0], 0
	}
	r.loss.progress(now, s)
}

// Failure is the reason why the requester ends a connection.
type Failure uint8

// Failures.
const (
	None           Failure = iota
	NoAnswer               // the retries are used up
	NotReady               // the RNR retries are used up
	InvalidRequest         // this and the following: NAKs from the responder for the message Token
	AccessError
	OperationalError
)

// Heard is the result of an acknowledgement or a response.
type Heard struct {
	Failure Failure
	Token   uint32 // of the message that failed
	// For a response: Take means that its data belong at Offset of the answer to Token, Done that they are
	// the last of that answer.
	Take, Done bool
	Offset     uint32
	// Refused: the packet can't be an answer from the peer; it is dropped.
	Refused bool
}

// firstUnanswered returns the first number from acked up to limit whose request is not wholly answered, or
// limit if there is none.
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

// plausible converts the PSN of an answer into a sequence number. ok means that a packet with that number
// is in flight, or that it is the last acknowledged.
func (r *Requester) plausible(p roce.PSN) (s Sequence, ok bool) {
	s = r.acked.near(p)
	return s, s+1 >= r.acked && s < r.sent
}

// Acknowledgement processes an acknowledgement packet.
func (r *Requester) Acknowledgement(now clock.Time, p roce.PSN, syndrome roce.Syndrome) (h Heard) {
	s, ok := r.plausible(p)
	if !ok {
		r.Stats.Ghosts++
		return Heard{Refused: true}
	}
	switch syndrome.Kind() {
	case roce.ACK:
		// An acknowledgement past a Read without an answer means that the answer is lost (InfiniBand vol.
		// 1).
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

// refused processes a NAK for the packet s, the oldest unacknowledged.
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

// Response processes a packet that answers a Read or an atomic, with n bytes of payload. If it returns
// Take, the caller must place the data or end the connection.
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
	part := uint32(s+1-m.first) % readPackets // 0: the last packet of its part
	if (h.Done || m.kind == Atomic || part == 0) && r.reads > 0 {
		r.reads--
	}
	r.advance(now, s+1)
	return h
}

// KindAt returns the type of the message that the answer p belongs to; ok is false if none is in flight.
func (r *Requester) KindAt(p roce.PSN) (kind Kind, ok bool) {
	s, ok := r.plausible(p)
	if !ok || s < r.acked {
		return Data, false
	}
	return r.at(s).kind, true
}
