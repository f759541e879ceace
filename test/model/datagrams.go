package model

import (
	"fmt"
	"slices"
)

// This file has queue pairs of type UD. A send completes when its datagram leaves, and cannot be refused. What arrives
// for a queue pair that can't receive, or without a receive, is lost.

const (
	qkey       = 0x11111111 // of all queue pairs
	headerRoom = 40         // in front of a datagram is room for the Global Routing Header
	maxMessage = 1024       // of the ports' active_mtu
	nowhere    = 2          // no queue pair of the peer
	withHeader = 1          // IBV_WC_GRH
)

// datagramSteps returns what may happen next to the datagrams of a queue pair; must as in steps.
func (s *state) datagramSteps(side, qp int) (next []state, must bool) {
	p := &s.pairs[side][qp]
	if p.sending() && len(p.sends) > 0 && (p.state == stateRTS || p.begun > 0) {
		n := *s
		n.leave(side, qp)
		next, must = append(next, n), true
	}
	for i := range p.flying {
		states, has := s.arrive(side, qp, i)
		if must = must || has; i < s.mayArrive(p) {
			next = append(next, states...)
		}
	}
	return next, must
}

// leave completes the oldest send. If its memory or length is wrong, the queue pair sends no more (SQE), and receives.
func (s *state) leave(side, qp int) {
	p := &s.pairs[side][qp]
	w := p.sends[0]
	p.sends, p.begun = p.sends[1:], max(p.begun-1, 0)
	status := s.localError(side, &w)
	if length(w.Elements) > maxMessage {
		status = locLength
	}
	s.completeSend(side, qp, &w, status)
	if status == success {
		p.flying = slices.Concat(p.flying, []Send{w})
		return
	}
	p.state = stateSQE
	s.flushSends(side, qp)
}

// arrive returns the possible results when datagram i of a queue pair, in the order of departure, arrives.
func (s state) arrive(side, qp, i int) (next []state, must bool) {
	p := &s.pairs[side][qp]
	w := p.flying[i]
	p.flying = slices.Delete(slices.Clone(p.flying), i, i+1)
	if i < p.old {
		p.old--
	}
	if w.To == nowhere || w.QKey != 0 {
		return []state{s}, true
	}
	to := 1 - side
	queue := s.receives(to, w.To, 0)
	if !s.pairs[to][w.To].receiving() || len(*queue) == 0 {
		return []state{s}, false // there may be a receive when it arrives
	}
	r, bytes := (*queue)[0], headerRoom+length(w.Elements)
	bad, unused := s.wrongElements(to, r, bytes)
	if bad || unused {
		next = append(next, s.badDatagram(to, w.To, locProt))
	}
	switch {
	case bytes > length(r.Elements):
		next = append(next, s.tooLong(to, w.To)...)
	case !bad:
		next = append(next, s.placeDatagram(to, qp, &w))
	}
	return next, true
}

// age is called when calls have had their results. A datagram that has not arrived when that happens twice is lost.
func (s *state) age() {
	for side := range s.pairs {
		for qp := range s.pairs[side] {
			p := &s.pairs[side][qp]
			p.flying = p.flying[p.old:]
			p.old = len(p.flying)
		}
	}
}

// badDatagram fails the receive that a datagram takes, and its queue pair.
func (s state) badDatagram(side, qp, status int) state {
	r := s.takeReceive(side, qp, 0)
	s.forgetReceive(side, r)
	s.see(side, ofReceives+qp, "%d status %d", r.ID, status)
	s.fail(side, qp)
	return s
}

func (s state) placeDatagram(to, from int, w *Send) state {
	r := s.takeReceive(to, w.To, 0)
	data := s.gather(1-to, w)
	s.scatter(to, r.Elements, slices.Concat(slices.Repeat([]int16{unknown}, headerRoom), data))
	flags, imm := withHeader, ""
	if w.Opcode == "SEND_IMM" {
		flags, imm = withHeader|withImm, fmt.Sprint(" ", w.Imm)
	}
	s.see(to, ofReceives+w.To, "%d 128 %d flags %d%s from %d", r.ID, headerRoom+len(data), flags, imm, from)
	return s
}
