package cm

import (
	"crypto/sha256"
	"encoding/binary"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
)

// This file limits the damage by forged source addresses: to the host at the address, and to the listener's
// backlog (docs/WIRE.md chapter 3, "Proof of an address").

// proof is the state of proving the address from which a request seems to come.
type proof struct {
	proved  bool
	counted bool // the id counts in the listener's unproved
	allowed int  // bytes of IP packets that may still be sent while the address is unproved
}

// heard records a copy of the request.
func (f *proof) heard(n int, proved bool) {
	f.allowed += n
	f.proved = f.proved || proved
}

// spend counts a message's bytes if they may be sent.
func (f *proof) spend(m *Manager, p *Message) bool {
	if f.proved {
		return true
	}
	n, _ := m.net.Wire(p.Dev).Size(p)
	if n > f.allowed {
		return false
	}
	f.allowed -= n
	return true
}

// sender is a connection, or a wire.
type sender interface{ Send(p *Message) }

// answer sends the answer to the request with a number. If the answer is too long for an unproved address, it
// asks for proof instead.
func (f *proof) answer(m *Manager, by sender, number uint32, p *Message) {
	if f.spend(m, p) {
		by.Send(p)
	} else {
		f.askForProof(m, p, number)
	}
}

// askForProof sends a Retry, which also says that the request has arrived; near is another answer to it.
func (f *proof) askForProof(m *Manager, near *Message, number uint32) {
	if q := m.tokens.retry(near, number, m.net.Now()); f.spend(m, q) {
		m.Stats.Retried++
		m.net.Wire(q.Dev).Send(q)
	}
}

// tokenTime is the length of the periods in which tokens are made from the same value. A token is also
// valid in the next period.
const tokenTime = 16 * clock.Second

// tokens creates and verifies tokens.
type tokens struct{ secret [16]byte }

// of returns the token of a request: only a host that receives packets at the sender's address can know it.
// Tokens are not stored. A token is never 0.
func (x *tokens) of(p *Message, number uint32, period clock.Time) uint32 {
	b := make([]byte, 0, 64)
	b = append(b, x.secret[:]...)
	from, to := p.Peer.Addr().As16(), p.Local.Addr().As16()
	b = append(append(b, from[:]...), to[:]...)
	b = binary.BigEndian.AppendUint16(b, p.Peer.Port())
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint64(b, uint64(period))
	sum := sha256.Sum256(b)
	return max(1, binary.BigEndian.Uint32(sum[:]))
}

// prove reports whether a request has the token that was sent to its sender.
func (x *tokens) prove(p *Message, now clock.Time) bool {
	token, period := p.Token, now/tokenTime
	return token != 0 && (token == x.of(p, p.Number, period) || token == x.of(p, p.Number, period-1))
}

// retry returns the message that asks the sender of the request with a number for proof. near has the
// addresses of both ends: it is the request, or another answer to it.
func (x *tokens) retry(near *Message, number uint32, now clock.Time) *Message {
	return &Message{Kind: handshake.Retry, Dev: near.Dev, Link: near.Link, Local: near.Local, Peer: near.Peer,
		Answers: number, Token: x.of(near, number, now/tokenTime)}
}

// minUnproved is the least number of handshakes with unproved addresses that a listener allows, however
// small its backlog.
const minUnproved = 16

// crowded reports whether a listener accepts only requests with proved addresses: half of its backlog is
// used, or as many handshakes with unproved addresses are in progress.
func (id *ID) crowded() bool {
	half := (id.queue.backlog + 1) / 2
	return id.queue.pending >= half || id.queue.unproved >= max(half, minUnproved)
}

// countUnproved counts a passive id whose peer has not proved its address.
func (id *ID) countUnproved() {
	id.proof.counted = true
	id.parent.queue.unproved++
}

// uncountUnproved undoes that: the peer of a passive id has proved its address, or the id has ended.
func (id *ID) uncountUnproved() {
	if id.proof.counted {
		id.proof.counted = false
		id.parent.queue.unproved--
	}
}

// retried handles the listener's request for a token. If we have already sent this token, the listener has
// accepted our request and its program has not answered yet.
func (m *Manager) retried(id *ID, token uint32) {
	switch token {
	case 0:
	case id.offered.token:
		id.alive = m.net.Now()
	default:
		id.offered.token = token
		m.sendRequest(id)
	}
}
