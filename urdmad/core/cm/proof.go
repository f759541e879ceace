package cm

import (
	"crypto/sha256"
	"encoding/binary"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// This file limits the damage by forged source addresses: to the host at the address, and to the listener's
// backlog (docs/WIRE.md chapter 3, "Proof of an address").

// amplification is how many bytes may be sent to an unproved address for each byte that seems to come from
// it, as in QUIC (RFC 9000 section 8.1).
const amplification = 3

// overhead returns the length of the IP and UDP headers before a packet's TRP header.
func overhead(p *Packet) int { return wire.IPLen(p.Local.Addr()) + wire.UDPLen }

// finSize returns the number of bytes reserved for the fin of a connection that is accepted and then given
// up.
func finSize(p *Packet) int { return overhead(p) + wire.TRPExtLen }

// minRequest returns the length to which a request's IP packet is padded, so that the longest accept may
// answer it at once, and a short one may be repeated.
func minRequest(p *Packet) int {
	longest := overhead(p) + wire.TRPLen + wire.ConnectLen + wire.TRPExtensionLen + wire.MaxPrivateData
	return (longest + finSize(p) + amplification - 1) / amplification
}

func sizeOf(p *Packet) int { return overhead(p) + wire.TRPLen + p.Connect.Len() }

// proof is the state of proving the address from which a request seems to come.
type proof struct {
	proved         bool
	counted        bool // the id counts in the listener's unproved
	received, sent int  // bytes of IP packets while the address is unproved
}

// heard records a copy of the request.
func (f *proof) heard(n int, proved bool) {
	f.received += n
	f.proved = f.proved || proved
}

// spend counts a packet's bytes if they may be sent.
func (f *proof) spend(p *Packet) bool {
	n := sizeOf(p)
	if !f.proved && f.sent+n+finSize(p) > amplification*f.received {
		return false
	}
	f.sent += n
	return true
}

// answer sends the answer to a request. If the answer is too long for an unproved address, it asks for
// proof instead.
func (f *proof) answer(m *Manager, r *request, p *Packet) {
	if f.spend(p) {
		m.net.Send(p)
	} else if q := m.tokens.retry(p, r.isn, m.net.Now()); f.spend(q) {
		m.Stats.Retried++
		m.net.Send(q)
	}
}

// tokenTime is the length of the periods in which tokens are made from the same value. A token is also
// valid in the next period.
const tokenTime = 16 * clock.Second

// tokens creates and verifies tokens.
type tokens struct{ secret [16]byte }

// of returns the token of a request: only a host that receives packets at the sender's address can know it.
// Tokens are not stored. A token is never 0.
func (x *tokens) of(p *Packet, isn wire.PSN, period clock.Time) uint32 {
	b := make([]byte, 0, 64)
	b = append(b, x.secret[:]...)
	from, to := p.Peer.Addr().As16(), p.Local.Addr().As16()
	b = append(append(b, from[:]...), to[:]...)
	b = binary.BigEndian.AppendUint16(b, p.Peer.Port())
	b = binary.BigEndian.AppendUint32(b, uint32(isn))
	b = binary.BigEndian.AppendUint64(b, uint64(period))
	sum := sha256.Sum256(b)
	return max(1, binary.BigEndian.Uint32(sum[:]))
}

// prove reports whether a request has the token that was sent to its sender.
func (x *tokens) prove(p *Packet, now clock.Time) bool {
	echo, period := p.Connect.Ext.Echo, now/tokenTime
	return echo != 0 && (echo == x.of(p, p.TRP.PSN, period) || echo == x.of(p, p.TRP.PSN, period-1))
}

// retry returns the packet that asks the sender of the request with this ISN for proof. near has the
// addresses of both ends: it is the request, or another answer to it.
func (x *tokens) retry(near *Packet, isn wire.PSN, now clock.Time) *Packet {
	q := &Packet{Dev: near.Dev, Link: near.Link, Local: near.Local, Peer: near.Peer,
		TRP: wire.TRP{Op: wire.OpRetry, Ack: isn}, Connect: wire.TRPConnect{HasExt: true}}
	q.Connect.Ext.Echo = x.of(near, isn, now/tokenTime)
	return q
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

// StillWaits records that the peer's host has our request and its program has not answered yet.
func (m *Manager) StillWaits(id *ID) { id.alive = m.net.Now() }

// retried handles the listener's request for a token. If we have already sent this token, the listener has
// accepted our request and its program has not answered yet.
func (m *Manager) retried(id *ID, token uint32) {
	switch token {
	case 0:
	case id.offered.token:
		m.StillWaits(id)
	default:
		id.offered.token = token
		m.sendRequest(id)
	}
}
