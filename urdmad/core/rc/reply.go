package rc

import "urdma/wire/roce"

// reply is the acknowledgement that the peer is to get: one for all that has come since
// the last, or a NAK in its place.
type reply struct {
	due      bool
	to       Sequence      // all before it is acknowledged
	said     Sequence      // as far as the last that left
	syndrome roce.Syndrome // of a NAK of the request at to; 0: an acknowledgement
	final    bool          // the NAK ends the connection
}

func (p *reply) acknowledge(to Sequence) {
	if p.syndrome == 0 {
		p.due, p.to = true, to
	}
}

func (p *reply) refuse(at Sequence, s roce.Syndrome) {
	if !p.final {
		p.due, p.to, p.syndrome = true, at, s
	}
}

// withdraw turns a NAK that is out of date into an acknowledgement.
func (p *reply) withdraw(to Sequence) {
	if !p.final {
		p.due, p.to, p.syndrome = true, to, 0
	}
}

// repeat acknowledges again, as far as to.
func (p *reply) repeat(to Sequence) {
	if p.syndrome == 0 && (!p.due || to < p.to) {
		p.due, p.to = true, to
		p.said = min(p.said, to-1)
	}
}

// Reply is the acknowledgement or NAK to be sent now; ok is false if there is none.
// limit is the first number that must not be acknowledged yet: what was placed is still
// to be written. A NAK waits for what is before it. Replied notes that it left.
func (r *Responder) Reply(limit uint64) (p roce.PSN, a roce.AETH, ok bool) {
	if !r.reply.due {
		return p, a, false
	}
	to := min(r.reply.to, Sequence(limit), r.answers.owed(r.reply.to))
	a.MSN = r.msn & (1<<24 - 1)
	if r.reply.syndrome != 0 {
		a.Syndrome = r.reply.syndrome
		return r.reply.to.PSN(), a, to == r.reply.to
	}
	a.Syndrome = roce.NoCredits
	return (to - 1).PSN(), a, to > r.reply.said
}

// Replied notes that the reply of that PSN left. final reports that it was a NAK which
// ends the connection.
func (r *Responder) Replied(p roce.PSN) (final bool) {
	v := &r.reply
	if v.syndrome != 0 {
		final = v.final
		*v = reply{said: v.said}
		return final
	}
	v.said = v.to.near(p) + 1
	v.due = v.said < v.to
	return false
}

// Refusing reports whether a NAK that ends the connection waits to be sent.
func (r *Responder) Refusing() bool { return r.reply.due && r.reply.final }
