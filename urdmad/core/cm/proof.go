package cm

import (
	"crypto/sha256"
	"encoding/binary"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// This file keeps forged addresses from costing much: the host at the address, and
// the listener whose backlog they take (docs/WIRE.md chapter 3, "Proof of an
// address").

// amplification is how many bytes go to an address that is not proved for each
// that seems to come from it, as in QUIC (RFC 9000 section 8.1).
const amplification = 3

// overhead is what stands before a packet's TRP header: IP and UDP headers.
func overhead(p *Packet) int { return wire.IPLen(p.Local.Addr()) + wire.UDPLen }

// finSize is kept back for the fin of a connection that was accepted and is given
// up.
func finSize(p *Packet) int { return overhead(p) + wire.TRPExtLen }

// minRequest is how large an IP packet a request is made, so that the longest
// accept may answer it at once, and a short one be repeated.
func minRequest(p *Packet) int {
	longest := overhead(p) + wire.TRPLen + wire.ConnectLen + wire.TRPExtensionLen + wire.MaxPrivateData
	return (longest + finSize(p) + amplification - 1) / amplification
}

func sizeOf(p *Packet) int { return overhead(p) + wire.TRPLen + p.Connect.Len() }

// proof is what is known of the address that a request seems to come from.
type proof struct {
	proved         bool
	counted        bool // in the listener's unproved
	received, sent int  // bytes of IP packets, as long as it is not proved
}

// heard notes a copy of the request.
func (f *proof) heard(n int, proved bool) {
	f.received += n
	f.proved = f.proved || proved
}

// spend counts a packet's bytes if so many may be sent.
func (f *proof) spend(p *Packet) bool {
	n := sizeOf(p)
	if !f.proved && f.sent+n+finSize(p) > amplification*f.received {
		return false
	}
	f.sent += n
	return true
}

// answer sends what answers a request, or, where that is too much for an address
// that is not proved, asks for proof.
func (f *proof) answer(m *Manager, r *request, p *Packet) {
	switch {
	case f.spend(p):
		m.net.Send(p)
	case r.knowsRetry():
		if q := m.tokens.retry(p, r.isn, m.net.Now()); f.spend(q) {
			m.Stats.Retried++
			m.net.Send(q)
		}
	}
}

func (r *request) knowsRetry() bool {
	return r.ext.Capabilities&wire.CapRetry != 0
}

// tokenTime is how long tokens are made alike. One is good in the next such
// time as well.
const tokenTime = 16 * clock.Second

// tokens makes and knows them.
type tokens struct{ secret [16]byte }

// of is the token of a request: only a host that receives packets at the sender's address
// can know it. Nothing is remembered of it. It is never 0.
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

// prove reports a request with the token that it was sent.
func (x *tokens) prove(p *Packet, now clock.Time) bool {
	echo, period := p.Connect.Ext.Echo, now/tokenTime
	return echo != 0 && (echo == x.of(p, p.TRP.PSN, period) || echo == x.of(p, p.TRP.PSN, period-1))
}

// retry asks the sender of the request with this ISN for proof. near names both
// ends: it is the request, or another answer to it.
func (x *tokens) retry(near *Packet, isn wire.PSN, now clock.Time) *Packet {
	q := &Packet{Dev: near.Dev, Link: near.Link, Local: near.Local, Peer: near.Peer,
		TRP: wire.TRP{Op: wire.OpRetry, Ack: isn}, Connect: wire.TRPConnect{HasExt: true}}
	q.Connect.Ext.Echo = x.of(near, isn, now/tokenTime)
	return q
}

// minUnproved is how many handshakes of addresses that are not proved a listener
// has under way at least, however small its backlog.
const minUnproved = 16

// crowded reports a listener that takes only requests whose address is proved:
// half of its backlog is taken, or as many were accepted and have not answered.
func (id *ID) crowded() bool {
	half := (id.queue.backlog + 1) / 2
	return id.queue.pending >= half || id.queue.unproved >= max(half, minUnproved)
}

// countUnproved counts a passive id whose peer has not proved its address.
func (id *ID) countUnproved() {
	id.proof.counted = true
	id.parent.queue.unproved++
}

// uncountUnproved: the peer of a passive id has proved its address, or the id is at its
// end.
func (id *ID) uncountUnproved() {
	if id.proof.counted {
		id.proof.counted = false
		id.parent.queue.unproved--
	}
}

// StillWaits: the peer's host has our request, and its program is still to answer.
func (m *Manager) StillWaits(id *ID) { id.alive = m.net.Now() }

// retried: the listener wants to hear a token. One that we have shown means that it
// took our request and its program is still to answer.
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
