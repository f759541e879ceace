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
			if p.state == stateErr && len(p.receives) > 0 {
				next = append(next, s.lateFlush(side, qp))
			}
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
			next = append(next, s.early(side, qp)...)
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
		next, must = append(next, n), peer.state == stateErr && !s.neverNoticed(side, qp)
	}
	if halted {
		return next, must
	}
	w := &p.sends[p.done]
	if status := s.localError(side, w); status != success {
		if p.done > 0 {
			return next, must
		}
		if s.rxe && w.reads() {
			next = append(next, s.elementsOfAnswer(side, qp, w)...)
		} else {
			next = nil
		}
		return append(next, s.failures(side, qp, s.elementStatuses(status))...), true
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
	return v.bound && v.variant == w.Key.Variant && (s.p.Type1 || v.qp == qp) && !s.gone[side][v.region] &&
		v.access&w.right() != 0 && within(w.At, length, v.at, v.len)
}

var windowNames = []string{"window0", "window1"}

// doLocal binds a window, or invalidates one.
func (s state) doLocal(side, qp int) ([]state, bool) {
	p := &s.pairs[side][qp]
	w := p.sends[p.done]
	status, before := success, s
	if !w.early {
		status = s.changeWindow(side, qp, &w)
	}
	if status == success {
		var refused []state
		if s.rxe && w.Opcode == "BIND" && p.done == 0 {
			refused = before.failures(side, qp, []int{bindError})
		}
		p.done++
		return append(refused, s), !s.rxe || refused != nil || w.Opcode != "BIND"
	}
	if p.done > 0 {
		return nil, false // those before it complete first
	}
	return s.failures(side, qp, localStatuses(status)), true
}

// failures fails the oldest send with any of several statuses.
func (s *state) failures(side, qp int, statuses []int) (next []state) {
	for _, status := range statuses {
		n := *s
		n.failSend(side, qp, status)
		next = append(next, n)
	}
	return next
}

// changeWindow binds or invalidates a window; if that is not allowed, it returns the status and changes nothing.
func (s *state) changeWindow(side, qp int, w *Send) int {
	if w.Opcode == "BIND" {
		return s.bind(side, qp, w)
	}
	if !s.invalidate(side, qp, w.Key) {
		return locQPOp
	}
	return success
}

// A window of type 2 must not be bound, and a length of 0 unbinds one of type 1. The memory must be registered for it.
func (s *state) bind(side, qp int, w *Send) int {
	r := &regions[w.Region]
	v := &s.windows[side][w.Window]
	writes := w.Access&(remoteWrite|remoteAtomic) != 0
	if s.p.Type1 && w.Length == 0 {
		*v = window{}
		return success
	}
	if v.bound && !s.p.Type1 || w.Region == regionForeign || s.gone[side][w.Region] || r.access&bindable == 0 ||
		writes && r.access&localWrite == 0 || w.Length == 0 || !within(w.At, w.Length, r.start, r.length) {
		return bindError
	}
	*v = window{true, w.Key.Variant, qp, w.At, w.Length, w.Access, w.Region}
	return success
}

func (s *state) invalidate(side, qp int, key Key) bool {
	i := slices.Index(windowNames, key.Of)
	if i < 0 || s.p.Type1 {
		return false
	}
	v := &s.windows[side][i]
	if !v.bound || v.variant != key.Variant || v.qp != qp && !s.rxe { // rxe: any queue pair of the domain
		return false
	}
	*v = window{}
	return true
}

// deliver returns the possible results of a send whose peer can receive.
func (s state) deliver(side, qp int, w *Send) ([]state, bool) {
	to := 1 - side
	size := length(w.Elements)
	if w.Flags&fence != 0 && slices.ContainsFunc(s.pairs[side][qp].begunBefore(), (*Send).reads) {
		return nil, false // their acknowledgements come first
	}
	denied := s.p.Access&w.right() == 0
	if w.right() != 0 && size == 0 && !w.atomic() && denied {
		return s.emptyWithoutRight(side, qp, w)
	}
	if w.right() != 0 && (size > 0 || w.atomic()) {
		if w.Opcode == "WRITE_IMM" && s.pairs[side][qp].waiting == w.ID {
			return s.writtenBefore(side, qp, w)
		}
		var next []state
		switch {
		case denied:
			next = s.refused(side, qp, noRight)
		case !s.remote(to, qp, w, size):
			next = s.refused(side, qp, badKey)
		}
		if !denied && w.atomic() && w.At%8 != 0 {
			next = append(next, s.refused(side, qp, misaligned)...)
		}
		if w.To == nowhere && w.takesReceive() {
			next = append(next, s.noQueue(side, qp, w)...)
		}
		if next != nil && !denied && s.rxe && w.takesReceive() && len(*s.receives(to, qp, w.To)) == 0 {
			waiting, must := s.notReady(side, qp, w)
			return append(next, waiting...), must
		}
		if next != nil {
			return next, true
		}
	}
	return s.carryOut(side, qp, w)
}

// carryOut is deliver for a message that has the rights it needs.
func (s state) carryOut(side, qp int, w *Send) ([]state, bool) {
	to := 1 - side
	switch {
	case w.takesReceive() && w.To == nowhere:
		return s.noQueue(side, qp, w), true
	case w.takesReceive():
		return s.intoReceive(side, qp, w)
	}
	s.overtakeReads(side, qp, w)
	switch {
	case w.Opcode == "WRITE":
		s.memory[to].write(w.At, s.gather(side, w))
	case w.Opcode == "READ":
		s.answer(side, qp, s.memory[to].read(w.At, length(w.Elements)))
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

// receives returns the queue from which a queue pair takes the receive of a message; named is the shared queue that
// the message names.
func (s *state) receives(side, qp, named int) *[]Receive {
	if s.p.SRQ {
		return &s.shared[side][s.p.queue(named)]
	}
	return &s.pairs[side][qp].receives
}

// takeReceive takes the oldest receive of a queue pair.
func (s *state) takeReceive(side, qp, named int) Receive {
	queue := s.receives(side, qp, named)
	r := (*queue)[0]
	*queue = (*queue)[1:]
	shared := s.p.queue(named)
	if limit := &s.limits[side][shared]; s.p.SRQ && len(*queue) < *limit {
		*limit = 0
		s.see(side, ofShared+shared, "event %d", eventLimit)
	}
	return r
}

// noQueue: a message names a shared queue that does not exist.
func (s state) noQueue(side, qp int, w *Send) []state {
	if w.right() != 0 {
		s.forgetTarget(side, qp, w)
	}
	return s.refuse(side, qp, remInvalid, eventRequest)
}

// intoReceive takes the oldest receive of the peer.
func (s state) intoReceive(side, qp int, w *Send) ([]state, bool) {
	to := 1 - side
	if len(*s.receives(to, qp, w.To)) == 0 {
		return s.notReady(side, qp, w)
	}
	r := s.takeReceive(to, qp, w.To)
	waited := s.pairs[side][qp].waits()
	bad, unused := s.wrongElements(to, r, length(w.Elements))
	if w.Opcode == "WRITE_IMM" {
		unused, bad = bad || unused, false // it needs no bytes of the receive
	}
	var next []state
	if bad || unused {
		n := s
		if w.Opcode == "WRITE_IMM" { // its data came first
			n.overtakeReads(side, qp, w)
			n.memory[to].forget(w.At, length(w.Elements))
		}
		next = n.badReceive(side, qp, w, r, locProt)
	}
	switch {
	case bad:
	case w.Opcode != "WRITE_IMM" && length(w.Elements) > length(r.Elements):
		next = append(next, s.badReceive(side, qp, w, r, locLength)...)
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
		s.seeReceive(to, qp, w, "%d 129 %d flags 2 %d", r.ID, len(data), w.Imm)
		p.done++
		return []state{s}
	case "SEND_INV":
		if !s.invalidate(to, qp, w.Key) {
			return s.badInvalidation(side, qp, r)
		}
	}
	s.scatter(to, r.Elements, data)
	flags := map[string]string{"SEND_IMM": fmt.Sprint(" flags 2 ", w.Imm), "SEND_INV": " flags 8"}[w.Opcode]
	if s.rxe && w.Opcode == "SEND_INV" {
		flags = "" // it has no flag for it
	}
	s.seeReceive(to, qp, w, "%d 128 %d%s", r.ID, len(data), flags)
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
