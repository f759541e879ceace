package cm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
)

// This file has the ids of port spaces whose queue pairs are of type UD (RDMA_PS_UDP, RDMA_PS_IPOIB). They
// have no connection: one side asks for the queue pair of a port number, and the other side's program
// answers (docs/WIRE.md chapter 10, InfiniBand's service ID resolution).

// services sends and answers the requests of such ids.
type services struct {
	m       *Manager
	asked   uint64
	secret  [16]byte
	replies map[requestKey]*Message // answers that may have to be repeated
}

// Why there is no queue pair for a port number; 0: there is one.
const (
	nobodyListens = 1
	saidNo        = 2
)

// number returns an unpredictable number for a request.
func (s *services) number() uint32 {
	s.asked++
	var b [24]byte
	copy(b[:], s.secret[:])
	binary.BigEndian.PutUint64(b[16:], s.asked)
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint32(sum[:])
}

// connect sends a request; ESTABLISHED or UNREACHABLE follows.
func (s *services) connect(id *ID, p *Param) error {
	if err := id.in(routed); err != nil {
		return err
	}
	if err := s.m.fits(id, handshake.Resolve, p.PrivateData); err != nil {
		return err
	}
	id.offered = request{number: s.number(), private: append([]byte(nil), p.PrivateData...), qpn: p.QPN}
	id.state, id.tries, id.begun = connecting, 0, s.m.net.Now()
	s.m.net.Set(id.timer, s.m.net.Now()+retryAfter(0))
	s.ask(id)
	return nil
}

func (s *services) ask(id *ID) {
	if id.sameHost && s.m.listener(id.peer, true) == nil && s.m.numbers.elsewhere(id.peer.Port()) {
		s.m.becomeSibling(id)
	}
	s.send(&Message{Kind: handshake.Resolve, Dev: id.dev, Link: id.terms.Link, Local: id.local, Peer: id.peer,
		Number: id.offered.number, QPN: id.offered.qpn, PrivateData: id.offered.private}, id.sameHost)
}

// again is the timer function of an id that waits for an answer.
func (s *services) again(id *ID) {
	if !s.m.retry(id) {
		s.m.fail(id, EventUnreachable, syscall.ETIMEDOUT)
		return
	}
	s.ask(id)
}

// send sends a message, or passes it to the id of this urdmad to which it is addressed.
func (s *services) send(p *Message, sameHost bool) {
	if !sameHost {
		s.m.net.Wire(p.Dev).Send(p)
		return
	}
	come := *p
	come.Local, come.Peer = p.Peer, p.Local
	s.m.net.Soon(func() { s.receive(&come, true) })
}

func (s *services) receive(p *Message, sameHost bool) {
	switch p.Kind {
	case handshake.Resolve:
		s.request(p, sameHost)
	case handshake.Resolved, handshake.Pending:
		s.answered(p)
	}
}

// request passes a request to the listening program. A copy of an answered request is answered again.
func (s *services) request(p *Message, sameHost bool) {
	m, key := s.m, requestKey{p.Dev, p.Peer, p.Number}
	if r := s.replies[key]; r != nil {
		s.send(r, sameHost)
		return
	}
	parent, later := m.admit(p.Local, true)
	switch {
	case m.incoming[key] != nil:
		s.send(answerTo(p, Message{Kind: handshake.Pending}), sameHost)
		return
	case later:
		return // the peer repeats the request
	case parent == nil:
		m.Stats.Refused++
		s.send(answerTo(p, Message{Kind: handshake.Resolved, Reason: nobodyListens}), sameHost)
		return
	}
	child := m.child(parent, p.Dev, p.Local, p.Peer)
	child.Datagrams, child.sameHost, child.terms.Link = true, sameHost, p.Link
	child.offered = request{number: p.Number, private: p.PrivateData, qpn: p.QPN}
	if m.announce(child) {
		m.incoming[key], child.key = child, key
	}
}

// answerTo addresses an answer to the sender of a request.
func answerTo(p *Message, a Message) *Message {
	a.Dev, a.Link, a.Local, a.Peer, a.Answers = p.Dev, p.Link, p.Local, p.Peer, p.Number
	return &a
}

// accept sends the queue pair to the peer that asked.
func (s *services) accept(id *ID, p *Param) error {
	if err := id.in(requested); err != nil {
		return err
	}
	if p.QPN == 0 {
		return fmt.Errorf("cm: rdma_conn_param names no queue pair (qp_num): %w", einval)
	}
	if err := s.m.fits(id, handshake.Resolved, p.PrivateData); err != nil {
		return err
	}
	s.m.Stats.Accepted++
	id.state = connected
	s.answer(id, Message{QPN: p.QPN, QKey: p.QKey, PrivateData: append([]byte(nil), p.PrivateData...)})
	return nil
}

func (s *services) reject(id *ID, private []byte) {
	s.m.Stats.Rejected++
	id.state = ended
	s.answer(id, Message{Reason: saidNo, PrivateData: append([]byte(nil), private...)})
}

// answer sends an answer, and keeps it as long as the peer may repeat its request.
func (s *services) answer(id *ID, a Message) {
	m, key := s.m, id.key
	id.decided()
	delete(m.incoming, key)
	a.Kind = handshake.Resolved
	p := answerTo(&Message{Dev: id.dev, Link: id.terms.Link, Local: id.local, Peer: id.peer,
		Number: id.offered.number}, a)
	if len(s.replies) < maxRefused {
		s.replies[key] = p
		m.after(m.timeout, func() { delete(s.replies, key) })
	}
	s.send(p, id.sameHost)
}

// answered handles the answer to a request of one of our ids.
func (s *services) answered(p *Message) {
	id := s.asker(p)
	if id == nil {
		return
	}
	if p.Kind == handshake.Pending {
		id.alive = s.m.net.Now()
		return
	}
	s.m.net.Set(id.timer, clock.Never)
	param := Param{PrivateData: p.PrivateData}
	if p.Reason != 0 {
		id.state = ended
		s.m.deliver(id, Event{Kind: EventUnreachable, Err: syscall.ECONNREFUSED, Reason: p.Reason,
			Param: param})
		return
	}
	param.QPN, param.QKey = p.QPN, p.QKey
	id.state = connected
	s.m.Stats.Established++
	s.m.deliver(id, Event{Kind: EventEstablished, Param: param})
}

func (s *services) asker(p *Message) *ID {
	for _, id := range s.m.numbers.ids[p.Local.Port()] {
		if id.Datagrams && id.state == connecting && id.local == p.Local && id.peer == p.Peer &&
			id.offered.number == p.Answers {
			return id
		}
	}
	return nil
}
