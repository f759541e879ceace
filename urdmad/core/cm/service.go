package cm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"syscall"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// This file has the ids of port spaces whose queue pairs are of type UD (RDMA_PS_UDP, RDMA_PS_IPOIB). They
// have no connection: one side asks for the queue pair of a port number, and the other side's program
// answers (docs/WIRE.md chapter 10, InfiniBand's service ID resolution).

// services sends and answers the requests of such ids.
type services struct {
	m       *Manager
	asked   uint64
	secret  [16]byte
	replies map[requestKey]*Packet // answers that may have to be repeated
}

// Why there is no queue pair for a port number; 0: there is one.
const (
	nobodyListens = 1
	saidNo        = 2
	NotYet        = 3 // the program has not answered yet
)

// number returns an unpredictable number for a request.
func (s *services) number() wire.PSN {
	s.asked++
	var b [24]byte
	copy(b[:], s.secret[:])
	binary.BigEndian.PutUint64(b[16:], s.asked)
	sum := sha256.Sum256(b[:])
	return wire.PSN(binary.BigEndian.Uint32(sum[:]))
}

// connect sends a request; ESTABLISHED or UNREACHABLE follows.
func (s *services) connect(id *ID, p *Param) error {
	if err := id.in(routed); err != nil {
		return err
	}
	if err := s.m.fits(id, wire.OpResolve, p.PrivateData); err != nil {
		return err
	}
	id.offered = request{isn: s.number(), private: append([]byte(nil), p.PrivateData...)}
	id.offered.ext = wire.TRPExtension{QPN: wire.QPN(p.QPN)}
	id.state, id.tries, id.begun = connecting, 0, s.m.net.Now()
	s.m.net.Set(id.timer, s.m.net.Now()+retryAfter(0))
	s.ask(id)
	return nil
}

func (s *services) ask(id *ID) {
	if id.sameHost && s.m.listener(id.peer) == nil && s.m.numbers.elsewhere(id.peer.Port()) {
		s.m.becomeSibling(id)
	}
	p := &Packet{Dev: id.dev, Link: id.terms.Link, Local: id.local, Peer: id.peer,
		TRP:     wire.TRP{Op: wire.OpResolve, PSN: id.offered.isn},
		Connect: wire.TRPConnect{PrivateData: id.offered.private, HasExt: true, Ext: id.offered.ext}}
	p.Connect.Padding = max(0, minRequest(p)-sizeOf(p))
	s.send(p, id.sameHost)
}

// again is the timer function of an id that waits for an answer.
func (s *services) again(id *ID) {
	if !s.m.retry(id) {
		s.m.fail(id, EventUnreachable, syscall.ETIMEDOUT)
		return
	}
	s.ask(id)
}

// send sends a packet, or passes it to the id of this urdmad to which it is addressed.
func (s *services) send(p *Packet, sameHost bool) {
	if !sameHost {
		s.m.net.Send(p)
		return
	}
	come := *p
	come.Local, come.Peer = p.Peer, p.Local
	s.m.net.Soon(func() { s.receive(&come, sizeOf(p), true) })
}

// receive handles a packet of size bytes.
func (s *services) receive(p *Packet, size int, sameHost bool) {
	if p.TRP.Op == wire.OpResolve {
		s.request(p, size, sameHost)
	} else {
		s.reply(p)
	}
}

// request passes a request to the listening program. A copy of an answered request is answered again. A
// request that is shorter than its answer may become is dropped.
func (s *services) request(p *Packet, size int, sameHost bool) {
	m, key := s.m, requestKey{p.Dev, p.Peer, p.TRP.PSN}
	if size < minRequest(p) && !sameHost { // within this urdmad nothing is forged
		return
	}
	if r := s.replies[key]; r != nil {
		s.send(r, sameHost)
		return
	}
	parent := m.listener(p.Local)
	switch {
	case m.incoming[key] != nil:
		s.send(answerTo(p, wire.TRPConnect{IRD: NotYet}), sameHost)
		return
	case parent == nil && m.numbers.isReserved(p.Local.Port()):
		return
	case parent == nil || !parent.Datagrams:
		m.Stats.Refused++
		s.send(answerTo(p, wire.TRPConnect{IRD: nobodyListens}), sameHost)
		return
	case parent.queue.pending >= parent.queue.backlog:
		return // the peer repeats the request
	}
	child := m.child(parent, p.Dev, p.Local, p.Peer)
	child.Datagrams, child.sameHost, child.terms.Link = true, sameHost, p.Link
	child.offered = request{isn: p.TRP.PSN, private: append([]byte(nil), p.Connect.PrivateData...)}
	child.offered.ext.QPN = p.Connect.Ext.QPN
	if m.announce(child) {
		m.incoming[key], child.key = child, key
	}
}

func answerTo(p *Packet, c wire.TRPConnect) *Packet {
	return &Packet{Dev: p.Dev, Link: p.Link, Local: p.Local, Peer: p.Peer,
		TRP: wire.TRP{Op: wire.OpResolved, Ack: p.TRP.PSN}, Connect: c}
}

// accept sends the queue pair to the peer that asked.
func (s *services) accept(id *ID, p *Param) error {
	if err := id.in(requested); err != nil {
		return err
	}
	if p.QPN == 0 {
		return fmt.Errorf("cm: rdma_conn_param names no queue pair (qp_num): %w", einval)
	}
	if err := s.m.fits(id, wire.OpResolved, p.PrivateData); err != nil {
		return err
	}
	s.m.Stats.Accepted++
	id.state = connected
	s.answer(id, wire.TRPConnect{PrivateData: append([]byte(nil), p.PrivateData...), HasExt: true,
		Ext: wire.TRPExtension{QPN: wire.QPN(p.QPN), Cookie: p.QKey}})
	return nil
}

func (s *services) reject(id *ID, private []byte) {
	s.m.Stats.Rejected++
	id.state = ended
	s.answer(id, wire.TRPConnect{IRD: saidNo, PrivateData: append([]byte(nil), private...)})
}

// answer sends an answer, and keeps it as long as the peer may repeat its request.
func (s *services) answer(id *ID, c wire.TRPConnect) {
	m, key := s.m, id.key
	id.decided()
	delete(m.incoming, key)
	p := answerTo(&Packet{Dev: id.dev, Link: id.terms.Link, Local: id.local, Peer: id.peer,
		TRP: wire.TRP{PSN: id.offered.isn}}, c)
	if len(s.replies) < maxRefused {
		s.replies[key] = p
		m.after(m.timeout, func() { delete(s.replies, key) })
	}
	s.send(p, id.sameHost)
}

// reply handles the answer to a request of one of our ids.
func (s *services) reply(p *Packet) {
	id := s.asker(p)
	if id == nil {
		return
	}
	r := &p.Connect
	if r.IRD == NotYet && !r.HasExt { // over RoCEv2 this is a status of InfiniBand: there is no queue pair
		id.alive = s.m.net.Now()
		return
	}
	s.m.net.Set(id.timer, clock.Never)
	param := Param{PrivateData: r.PrivateData}
	if r.IRD != 0 || !r.HasExt {
		id.state = ended
		s.m.deliver(id, Event{Kind: EventUnreachable, Err: syscall.ECONNREFUSED, Reason: max(r.IRD, nobodyListens),
			Param: param})
		return
	}
	param.QPN, param.QKey = uint32(r.Ext.QPN), r.Ext.Cookie
	id.state = connected
	s.m.Stats.Established++
	s.m.deliver(id, Event{Kind: EventEstablished, Param: param})
}

func (s *services) asker(p *Packet) *ID {
	for _, id := range s.m.numbers.ids[p.Local.Port()] {
		if id.Datagrams && id.state == connecting && id.local == p.Local && id.peer == p.Peer && id.offered.isn == p.TRP.Ack {
			return id
		}
	}
	return nil
}
