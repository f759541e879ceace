package model

import (
	"fmt"
	"slices"
)

// steps returns what may happen next to a send of any queue pair; must means that one of these steps must happen.
func (s *state) steps() (next []state, must bool) {
	for side := range 2 {
		for qp := range 2 {
			if s.p.UD {
				states, has := s.datagramSteps(side, qp)
				next, must = append(next, states...), must || has
				continue
			}
			p := &s.pairs[side][qp]
			if !p.sending() || len(p.sends) == 0 {
				continue
			}
			if p.done > 0 {
				n := *s
				n.acknowledge(side, qp, 1)
				next = append(next, n)
				must = must || !s.stream || !p.sends[0].reads() || !s.pairs[1-side][qp].waits()
			}
			states, has := s.begin(side, qp)
			next, must = append(next, states...), must || has
		}
	}
	return next, must
}

// begin returns the possible results of the first send that has not been carried out.
func (s *state) begin(side, qp int) (next []state, must bool) {
	p, peer := &s.pairs[side][qp], &s.pairs[1-side][qp]
	if p.refusal != 0 {
		return s.hearRefusal(side, qp), true
	}
	halted := p.done == len(p.sends) || p.state == stateSQD && p.done >= p.begun
	if !halted && p.sends[p.done].local() {
		return s.doLocal(side, qp)
	}
	// The oldest unacknowledged request reveals an unreachable peer.
	if (!peer.receiving() || s.stale[qp]) && (p.done > 0 || !halted) && !p.sends[0].local() {
		n := *s
		n.failSend(side, qp, retryExc)
		next, must = append(next, n), peer.state == stateErr
	}
	if halted {
		return next, must
	}
	w := &p.sends[p.done]
	if status := s.localError(side, w); status != success {
		if p.done == 0 {
			n := *s
			n.failSend(side, qp, status)
			return []state{n}, true
		}
		return next, must
	}
	if peer.receiving() {
		states, has := s.deliver(side, qp, w)
		return append(next, states...), must || has && !s.stale[qp]
	}
	return next, must
}

// waits reports whether the next send has found no receive.
func (p *pair) waits() bool { return p.done < len(p.sends) && p.sends[p.done].ID == p.waiting }

// begunBefore returns the sends that were carried out and not acknowledged.
func (p *pair) begunBefore() []*Send {
	var before []*Send
	for i := range p.done {
		before = append(before, &p.sends[i])
	}
	return before
}

// overtakeReads: without a fence, a Write or an atomic may come before the Reads that were posted in front of it have
// read their memory (InfiniBand's table of work request ordering).
func (s *state) overtakeReads(side, qp int, w *Send) {
	if w.right()&(remoteWrite|remoteAtomic) == 0 {
		return
	}
	p := &s.pairs[side][qp]
	p.sends = slices.Clone(p.sends)
	for _, r := range p.begunBefore() {
		if r.Opcode == "READ" && w.At < r.At+length(r.Elements) && r.At < w.At+length(w.Elements) {
			data := slices.Repeat([]int16{unknown}, length(r.Elements))
			r.result = &data
		}
	}
}

func (w *Send) local() bool { return w.Opcode == "BIND" || w.Opcode == "INVALIDATE" }
func (w *Send) reads() bool { return w.Opcode == "READ" || w.atomic() }
func (w *Send) atomic() bool {
	return w.Opcode == "CAS" || w.Opcode == "ADD"
}

// takesReceive reports whether the message needs a receive of the peer.
func (w *Send) takesReceive() bool {
	return w.Opcode == "WRITE_IMM" || w.Opcode == "SEND" || w.Opcode == "SEND_IMM" || w.Opcode == "SEND_INV"
}

// right returns the access right that the request needs in the peer's memory; 0 if it names none.
func (w *Send) right() int {
	switch w.Opcode {
	case "WRITE", "WRITE_IMM":
		return remoteWrite
	case "READ":
		return remoteRead
	case "CAS", "ADD":
		return remoteAtomic
	}
	return 0
}

// local reports whether an element names memory of the queue pair's domain, with a right.
func (s *state) local(side int, e Element, right int) bool {
	for i, r := range regions {
		if r.name == e.Key.Of {
			return i != regionForeign && !s.gone[side][i] && r.access&right == right &&
				within(e.Offset, e.Length, r.start, r.length)
		}
	}
	return false
}

func within(at, length, start, size int) bool {
	return length == 0 || at >= start && at+length <= start+size
}

func (s *state) localError(side int, w *Send) int {
	if w.Flags&inline != 0 {
		return success
	}
	right := 0
	if w.reads() {
		right = localWrite
	}
	for _, e := range w.Elements {
		if !s.local(side, e, right) {
			return locProt
		}
	}
	return success
}

// remote reports whether a key of a side allows an operation to its queue pair's peer.
func (s *state) remote(side, qp int, w *Send, length int) bool {
	for i, r := range regions {
		if r.name == w.Key.Of {
			return i != regionForeign && !s.gone[side][i] && r.access&w.right() != 0 && within(w.At, length, r.start, r.length)
		}
	}
	i := slices.Index(windowNames, w.Key.Of)
	if i < 0 {
		return false
	}
	v := &s.windows[side][i]
	return v.bound && v.variant == w.Key.Variant && v.qp == qp && !s.gone[side][v.region] && v.access&w.right() != 0 &&
		within(w.At, length, v.at, v.len)
}

var windowNames = []string{"window0", "window1"}

// doLocal binds a window, or invalidates one.
func (s state) doLocal(side, qp int) ([]state, bool) {
	p := &s.pairs[side][qp]
	w := p.sends[p.done]
	status := success
	if w.Opcode == "BIND" {
		status = s.bind(side, qp, &w)
	} else if !s.invalidate(side, qp, w.Key) {
		status = locQPOp
	}
	if status == success {
		p.done++
		return []state{s}, true
	}
	if p.done > 0 {
		return nil, false // those before it complete first
	}
	var next []state
	for _, allowed := range localStatuses(status) {
		n := s
		n.failSend(side, qp, allowed)
		next = append(next, n)
	}
	return next, true
}

// A window of type 2 must not be bound, and its memory must be registered for it.
func (s *state) bind(side, qp int, w *Send) int {
	r := &regions[w.Region]
	v := &s.windows[side][w.Window]
	writes := w.Access&(remoteWrite|remoteAtomic) != 0
	if v.bound || w.Region == regionForeign || s.gone[side][w.Region] || r.access&bindable == 0 ||
		writes && r.access&localWrite == 0 || w.Length == 0 || !within(w.At, w.Length, r.start, r.length) {
		return bindError
	}
	*v = window{true, w.Key.Variant, qp, w.At, w.Length, w.Access, w.Region}
	return success
}

func (s *state) invalidate(side, qp int, key Key) bool {
	i := slices.Index(windowNames, key.Of)
	if i < 0 || !s.windows[side][i].bound || s.windows[side][i].variant != key.Variant || s.windows[side][i].qp != qp {
		return false
	}
	s.windows[side][i] = window{}
	return true
}

// deliver returns the possible results of a send whose peer can receive.
func (s state) deliver(side, qp int, w *Send) ([]state, bool) {
	to := 1 - side
	size := length(w.Elements)
	if w.Flags&fence != 0 && slices.ContainsFunc(s.pairs[side][qp].begunBefore(), (*Send).reads) {
		return nil, false // their acknowledgements come first
	}
	if right := w.right(); right != 0 && (size > 0 || w.atomic()) {
		if w.Opcode == "WRITE_IMM" && s.pairs[side][qp].waiting == w.ID {
			return s.writtenBefore(side, qp, w)
		}
		if s.p.Access&right == 0 {
			return s.refused(side, qp, noRight), true
		}
		var next []state
		if !s.remote(to, qp, w, size) {
			next = s.refused(side, qp, badKey)
		}
		if w.atomic() && w.At%8 != 0 {
			next = append(next, s.refused(side, qp, misaligned)...)
		}
		if next != nil && s.rxe && w.takesReceive() && len(*s.receives(to, qp)) == 0 {
			waiting, must := s.notReady(side, qp, w)
			return append(next, waiting...), must
		}
		if next != nil {
			return next, true
		}
	}
	if w.takesReceive() {
		return s.intoReceive(side, qp, w)
	}
	s.overtakeReads(side, qp, w)
	switch {
	case w.Opcode == "WRITE":
		s.memory[to].write(w.At, s.gather(side, w))
	case w.Opcode == "READ":
		s.answer(side, qp, s.memory[to].read(w.At, size))
	case w.atomic():
		s.change(side, qp, w)
	}
	s.pairs[side][qp].done++
	return []state{s}, true
}

// answer records what a send reads when it is carried out. Until it is acknowledged, some of the data may have
// arrived.
func (s *state) answer(side, qp int, data []int16) {
	p := &s.pairs[side][qp]
	s.forgetResults(side, &p.sends[p.done])
	p.sends = slices.Clone(p.sends)
	p.sends[p.done].result = &data
}

func (s *state) gather(side int, w *Send) (data []int16) {
	if w.data != nil {
		return *w.data
	}
	for _, e := range w.Elements {
		data = append(data, s.memory[side].read(e.Offset, e.Length)...)
	}
	return data
}

func (s *state) scatter(side int, to []Element, data []int16) {
	for _, e := range to {
		n := min(e.Length, len(data))
		s.memory[side].write(e.Offset, data[:n])
		data = data[n:]
	}
}

func (s *state) change(side, qp int, w *Send) {
	m := &s.memory[1-side]
	old := m.read(w.At, 8)
	value, known := m.word(w.At)
	switch {
	case !known:
		m.forget(w.At, 8)
	case w.Opcode == "ADD":
		m.write(w.At, wordBytes(value+w.Compare))
	case value == w.Compare:
		m.write(w.At, wordBytes(w.Swap))
	}
	s.answer(side, qp, old)
}

// receives returns the queue from which a queue pair takes its receives.
func (s *state) receives(side, qp int) *[]Receive {
	if s.p.SRQ {
		return &s.shared[side]
	}
	return &s.pairs[side][qp].receives
}

// takeReceive takes the oldest receive of a queue pair.
func (s *state) takeReceive(side, qp int) Receive {
	queue := s.receives(side, qp)
	r := (*queue)[0]
	*queue = (*queue)[1:]
	if s.p.SRQ && len(*queue) < s.limits[side] {
		s.limits[side] = 0
		s.see(side, ofShared, "event %d", eventLimit)
	}
	return r
}

// intoReceive takes the oldest receive of the peer.
func (s state) intoReceive(side, qp int, w *Send) ([]state, bool) {
	to := 1 - side
	if len(*s.receives(to, qp)) == 0 {
		return s.notReady(side, qp, w)
	}
	r := s.takeReceive(to, qp)
	waited := s.pairs[side][qp].waits()
	bad, unused := s.wrongElements(to, r, length(w.Elements))
	if w.Opcode == "WRITE_IMM" {
		unused, bad = bad || unused, false // it needs no bytes of the receive
	}
	var next []state
	if bad || unused {
		n := s
		if w.Opcode == "WRITE_IMM" { // its data came first
			n.memory[to].forget(w.At, length(w.Elements))
		}
		next = n.badReceive(side, qp, r, locProt)
	}
	switch {
	case bad:
	case w.Opcode != "WRITE_IMM" && length(w.Elements) > length(r.Elements):
		next = append(next, s.badReceive(side, qp, r, locLength)...)
	default:
		placed := s.place(side, qp, w, r)
		next = append(next, placed...)
		if waited && s.p.RNRRetry < 7 {
			next = append(next, lateReceive(placed, side, qp)...)
		}
	}
	return next, true
}

// wrongElements reports whether elements that a message of n bytes needs can't be written, and whether others can't.
func (s *state) wrongElements(side int, r Receive, bytes int) (needed, unneeded bool) {
	for _, e := range r.Elements {
		wrong := !s.local(side, e, localWrite)
		needed, unneeded = needed || wrong && bytes > 0, unneeded || wrong && bytes <= 0
		bytes -= e.Length
	}
	return needed, unneeded
}

// place places a message and completes its receive.
func (s state) place(side, qp int, w *Send, r Receive) []state {
	to, data := 1-side, s.gather(side, w)
	p := &s.pairs[side][qp]
	switch w.Opcode {
	case "WRITE_IMM":
		s.overtakeReads(side, qp, w)
		s.memory[to].write(w.At, data)
		s.see(to, ofReceives+qp, "%d 129 %d flags 2 %d", r.ID, len(data), w.Imm)
		p.done++
		return []state{s}
	case "SEND_INV":
		if !s.invalidate(to, qp, w.Key) {
			return s.badInvalidation(side, qp, r)
		}
	}
	s.scatter(to, r.Elements, data)
	s.see(to, ofReceives+qp, "%d 128 %d%s", r.ID, len(data), map[string]string{"SEND_IMM": fmt.Sprint(" flags 2 ", w.Imm),
		"SEND_INV": " flags 8"}[w.Opcode])
	p.done++
	return []state{s}
}

// notReady: the peer has no receive. Most of a Write with immediate data may have been written.
func (s state) notReady(side, qp int, w *Send) ([]state, bool) {
	p := &s.pairs[side][qp]
	waited := p.waits()
	if waited && s.p.RNRRetry == 7 {
		return nil, false
	}
	var next []state
	if w.Opcode == "WRITE_IMM" && !waited {
		s.overtakeReads(side, qp, w)
		s.memory[1-side].forget(w.At, length(w.Elements))
	}
	if s.p.RNRRetry < 7 {
		for _, n := range s.acknowledgeBeforeRefusal(side, qp) {
			n.failSend(side, qp, rnrExc)
			next = append(next, n)
		}
	}
	if s.p.RNRRetry == 7 || s.stream && !waited {
		s.pairs[side][qp].waiting = w.ID
		next = append(next, s)
	}
	return next, s.p.RNRRetry < 7
}
