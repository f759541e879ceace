package rc

import "urdma/wire/roce"

// reply is the next acknowledgement for the peer: it covers everything that has arrived since the last, or
// is a NAK.
type reply struct {
	due      bool
	to       Sequence      // everything before it is acknowledged
	said     Sequence      // the value of to in the last reply that was sent
	syndrome roce.Syndrome // of a NAK for the request at to; 0: an acknowledgement
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

// withdraw replaces an obsolete NAK by an acknowledgement.
func (p *reply) withdraw(to Sequence) {
	if !p.final {
		p.due, p.to, p.syndrome = true, to, 0
	}
}

// repeat sends an acknowledgement up to to again.
func (p *reply) repeat(to Sequence) {
	if p.syndrome == 0 && (!p.due || to < p.to) {
		p.due, p.to = true, to
		p.said = min(p.said, to-1)
	}
}

// Reply returns the acknowledgement or NAK to send now; ok is false if there is none. limit is the first
// number that must not be acknowledged yet, because its data are not written yet. A NAK waits until
// everything before it may be acknowledged. The caller calls Replied once the reply is sent.
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

// Replied records that the reply with that PSN was sent. final reports that it was a NAK that ends the
// connection.
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

// Refusing reports whether a NAK that ends the connection is still to be sent.
func (r *Responder) Refusing() bool { return r.reply.due && r.reply.final }
