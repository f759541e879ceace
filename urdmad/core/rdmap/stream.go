package rdmap

import (
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Stream is a queue pair's end of a stream. Init makes it usable.
type Stream struct {
	Segmenter
	stats   *Stats
	answers answers

	recvMSN     wire.MSN // expected next on queue 0
	reqMSN      wire.MSN // expected next on queue 1
	atomicMSN   wire.MSN // of our next answer on queue 3
	answeredMSN wire.MSN // expected next on queue 3
	written     written
	answered    bool // the last token was an answer's: answers and requests alternate
	answer      bool // Ready found an answer
	request     bool
}

// Stats counts over all streams of a worker.
type Stats struct {
	SegmentsSent   uint64 `counter:"segments_sent"`
	SegmentsPlaced uint64 `counter:"segments_placed"`
	TerminatesSent map[wire.TermCode]uint64
	TerminatesGot  map[wire.TermCode]uint64

	answers answerRings // unused rings for the streams
}

// NewStats returns zeroed counters.
func NewStats() *Stats {
	return &Stats{TerminatesSent: map[wire.TermCode]uint64{}, TerminatesGot: map[wire.TermCode]uint64{}}
}

// Init starts a stream of q. ird is how many Reads the peer may have outstanding, maxSegment the greatest
// length of a DDP segment in bytes, including headers; lines is as for NewSegmenter.
func (s *Stream) Init(q *qp.QP, ird uint16, maxSegment int, lines bool, stats *Stats) {
	*s = Stream{Segmenter: NewSegmenter(q, maxSegment, lines), stats: stats, recvMSN: 1, reqMSN: 1, atomicMSN: 1,
		answeredMSN: 1}
	s.answers.init(ird, &stats.answers)
}

// Ready reports whether there is a segment to send, and starts its message.
func (s *Stream) Ready() bool {
	s.request = s.QP.Ready() // before the answers: its completions may end the stream
	s.answer = s.answers.ready()
	return s.answer || s.request
}

// Next returns the token of the segment to send next, after Ready has returned true. It alternates between
// answers and work requests.
func (s *Stream) Next() (token uint64) {
	s.answered = !s.answered
	if s.answer && (!s.request || s.answered) {
		return tokenAnswer | makeToken(s.answers.nextSlot(), s.answers.next().sent)
	}
	sq := &s.QP.SQ
	if wr := sq.At(sq.Next()); !wr.ImmediateNext() {
		return Token(sq, sq.Next(), wr.Offset())
	}
	return ImmediateToken(sq, sq.Next())
}

// Sent records that the segment that Next returned was sent; mark is its ordinal.
func (s *Stream) Sent(token, mark uint64) {
	s.stats.SegmentsSent++
	if token&tokenAnswer != 0 {
		s.answers.sent(mark, s.payload[1])
		return
	}
	sq := &s.QP.SQ
	wr, n := sq.At(sq.Next()), uint32(0)
	if !wr.ImmediateNext() {
		n = wr.Run(wr.Offset(), s.Payload(wr))
	}
	sq.Sent(n, mark, true)
}

// More reports whether there are unsent segments, whether they may be sent now or not.
func (s *Stream) More() bool {
	return s.QP != nil && s.QP.SQ.Next() != s.QP.SQ.Tail() || s.answers.now != s.answers.tail
}

// Acked records that the peer has all segments up to mark.
func (s *Stream) Acked(mark uint64) {
	s.answers.acked(mark)
	if s.QP != nil {
		s.QP.Acknowledge(mark)
	}
}

// Serving returns how many of the peer's Reads are not wholly answered.
func (s *Stream) Serving() int { return s.answers.open() }

// Drained reports whether all posted work is complete and all of the peer's Reads are answered.
func (s *Stream) Drained() bool {
	return s.QP == nil || s.QP.SQ.Empty() && s.answers.open() == 0
}

// Drop discards the answers when the stream has ended.
func (s *Stream) Drop() {
	s.answers.drop()
}

// Revoked ends work on a segment that Build could not read because its memory was deregistered. A send
// fails. For an answer it returns the Read Request that must be refused, and the code.
func (s *Stream) Revoked(token uint64) (refused *Segment, code wire.TermCode) {
	slot := tokenSlot(token)
	if token&tokenAnswer == 0 {
		s.QP.FailRevoked(slot)
		return nil, 0
	}
	return s.answers.at(slot).request(), wire.TermProtectionSTag
}

// Capabilities returns what a urdmad tells its peer about queue pair q when they connect.
func Capabilities(q *qp.QP) uint32 {
	if q.Type == abi.QPTypeXRCRecv {
		return wire.CapXRC
	}
	return 0
}

// AcceptedBy returns the messages that a urdmad with these capabilities accepts beyond RFC 5040's.
func AcceptedBy(capabilities uint32) qp.Messages {
	if capabilities&wire.CapXRC != 0 {
		return qp.ImmediateData | qp.Atomics | qp.XRC
	}
	return qp.ImmediateData | qp.Atomics
}
