package model

import (
	"fmt"
	"slices"
	"syscall"
)

// depth is the requested number of work requests in each queue.
const depth = 16

// pair is one side's queue pair.
type pair struct {
	state     int
	destroyed bool
	// sends are the sends that have not completed. The peer has carried out the first done of them. In SQD at
	// most begun of them begin.
	sends       []Send
	done, begun int
	// waiting is the ID of the send for which the peer had no receive.
	waiting int
	// refusal is the status of the first send that was not carried out, before the refusal arrives; 0: none.
	refusal  int
	receives []Receive
	// flying are datagrams that have left and not arrived, the first old of them for long.
	flying []Send
	old    int
}

func (p *pair) receiving() bool {
	return !p.destroyed && (p.state == stateRTR || p.state == stateRTS || p.state == stateSQD || p.state == stateSQE)
}

func (p *pair) sending() bool { return !p.destroyed && (p.state == stateRTS || p.state == stateSQD) }

// window is a memory window while it is bound.
type window struct {
	bound                        bool
	variant, qp, at, len, access int
	region                       int
}

// state is everything that the model knows. It is copied as a value; slices in it are never changed in place.
type state struct {
	p *Program
	// stream: the messages of a side, answers included, are one stream (differences.go). rxe: the provider is
	// Linux's rxe (differences.go).
	stream, rxe bool
	// overtake: datagrams may overtake each other (differences.go).
	overtake bool
	pairs    [2][2]pair // by side and number
	shared   [2][2][]Receive
	limits   [2][2]int
	gone     [2][5]bool // regions that were deregistered
	windows  [2][2]window
	// stale: one side of the connection was reset without the other.
	stale  [2]bool
	memory [2]memory
	// seen is what the program sees, in order: completions of the send and receive queue of each queue pair, and
	// asynchronous events: errors of the queue pairs, the last receive of each, and events of the shared queue.
	seen [2][streams]string
}

// Streams of seen: for queue pair i its sends, receives (those from an XRC program's second shared queue apart, as
// they have a completion queue of their own), errors and last receive; the last streams are the shared queues'.
const (
	ofSends, ofReceives, ofSecond, ofErrors, ofLast = 0, 2, 4, 6, 8
	ofShared                                        = 10
	streams                                         = 12
)

func (j *Judge) newState(p *Program) state {
	s := state{p: p, stream: j.Stream, rxe: j.RXE, overtake: j.Overtake, memory: [2]memory{newMemory(), newMemory()}}
	s.gone[0][regionGone], s.gone[1][regionGone] = true, true
	return s
}

// key is equal for equal states.
func (s *state) key() string {
	var h [2][parts]uint64
	for side := range h {
		for i := range h[side] {
			h[side][i] = s.memory[side][i].history
		}
	}
	return fmt.Sprint(s.pairs, s.shared, s.limits, s.gone, s.windows, s.stale, s.seen, h)
}

// result is a possible state after a call, and the call's errno.
type result struct {
	s     state
	errno syscall.Errno
}

// call returns the possible results of a call, before anything that happens later.
func (s state) call(c Call) []result {
	if s.leftOut(&c) {
		return []result{{s, 0}}
	}
	switch c.What {
	case "connect":
		return []result{{s.connect(c.QP), 0}}
	case "state":
		return s.modify(c)
	case "send":
		return s.send(c)
	case "receive":
		return s.receive(c)
	case "limit":
		s.limits[c.Side][s.p.queue(c.QP)] = c.Number
		return []result{{s, 0}}
	case "deregister":
		return s.deregister(c)
	case "destroy":
		p := &s.pairs[c.Side][c.QP]
		*p = pair{destroyed: true, state: stateErr, flying: p.flying, old: p.old}
		return []result{{s, 0}}
	}
	return []result{{s, syscall.EBUSY}} // busy
}

// leftOut reports whether a program leaves the call out: it names an object that does not exist, or expects an object
// to be in use that is not.
func (s *state) leftOut(c *Call) bool {
	switch c.What {
	case "limit":
		return !s.p.SRQ
	case "deregister":
		return s.gone[c.Side][c.Number]
	case "busy": // with a completion queue or a shared receive queue that no queue pair uses
		pairs := &s.pairs[c.Side]
		return pairs[0].destroyed && pairs[1].destroyed && !s.p.XRC && c.Number != 1
	}
	return s.pairs[c.Side][c.QP].destroyed || slices.ContainsFunc(c.Sends, func(w Send) bool {
		return w.Opcode == "BIND" && s.gone[c.Side][w.Region] && (w.Length > 0 || !s.p.Type1)
	})
}

// connect resets both sides and connects them.
func (s state) connect(qp int) state {
	for side := range 2 {
		if p := &s.pairs[side][qp]; !p.destroyed {
			*p = pair{state: stateRTS, flying: p.flying, old: p.old}
		}
	}
	s.stale[qp] = false
	return s
}

// allowed are the transitions that ibv_modify_qp(3) and the table of states allow, in addition to those to RESET and
// ERR.
var allowed = [...][2]int{{stateReset, stateInit}, {stateInit, stateInit}, {stateInit, stateRTR}, {stateRTR, stateRTS},
	{stateRTS, stateRTS}, {stateRTS, stateSQD}, {stateSQD, stateRTS}, {stateSQD, stateSQD}, {stateSQE, stateRTS}}

func (s state) modify(c Call) (results []result) {
	p := &s.pairs[c.Side][c.QP]
	from := p.state
	switch {
	case c.Number == stateReset:
		*p = pair{flying: p.flying, old: p.old}
		s.stale[c.QP] = true
	case c.Number == stateErr && from == stateReset: // Linux refuses it
		refused := result{s, syscall.EINVAL}
		s.fail(c.Side, c.QP)
		return []result{{s, 0}, refused}
	case c.Number == stateErr:
		s.fail(c.Side, c.QP)
	case !slices.Contains(allowed[:], [2]int{from, c.Number}):
		return []result{{s, syscall.EINVAL}}
	case c.Number == stateSQD && from == stateRTS: // it is unknown how many have begun
		p.state = stateSQD
		for p.begun = p.done; p.begun <= len(p.sends); p.begun++ {
			results = append(results, result{s, 0})
		}
		return results
	default:
		p.state = c.Number
	}
	return []result{{s, 0}}
}

func (s state) send(c Call) []result {
	p := &s.pairs[c.Side][c.QP]
	if p.state < stateRTS {
		return []result{{s, syscall.EINVAL}}
	}
	if len(p.sends)+len(c.Sends) > depth {
		panic("a program that fills its send queue")
	}
	var results []result
	for _, w := range c.Sends {
		results = append(results, s.refusedPost(c.Side, c.QP, &w)...)
		if w.Flags&inline != 0 {
			data := s.gather(c.Side, &w)
			w.data = &data
		}
		p.sends = slices.Concat(p.sends, []Send{w})
	}
	s.posted(c.Side, c.QP)
	return append(results, result{s, 0})
}

// posted follows ibv_post_send.
func (s *state) posted(side, qp int) {
	if p := &s.pairs[side][qp]; p.state == stateErr || p.state == stateSQE {
		s.flushSends(side, qp)
	}
}

func (s state) receive(c Call) []result {
	p := &s.pairs[c.Side][c.QP]
	queue := s.receives(c.Side, c.QP, c.QP)
	if !s.p.SRQ && p.state == stateReset {
		return []result{{s, syscall.EINVAL}}
	}
	full := result{s, syscall.ENOMEM}
	*queue = slices.Concat(*queue, []Receive{*c.Receive})
	if p.state == stateErr && !s.p.SRQ && !s.rxe {
		s.flush(c.Side, c.QP)
	}
	if len(*queue) > depth { // it may have more room than requested
		return []result{{s, 0}, full}
	}
	return []result{{s, 0}}
}

func (s state) deregister(c Call) (results []result) {
	for i := range s.windows[c.Side] {
		if w := &s.windows[c.Side][i]; w.bound && w.region == c.Number {
			results = append(results, result{s, syscall.EBUSY})
		}
	}
	s.gone[c.Side][c.Number] = true
	return append(results, result{s, 0})
}

// see adds to the events that a program sees.
func (s *state) see(side, stream int, format string, args ...any) {
	if s.rxe && stream >= ofErrors && stream < ofShared {
		return
	}
	s.seen[side][stream] += fmt.Sprintf(format, args...) + "\n"
}

// seeReceive is see for a receive that a message with w takes.
func (s *state) seeReceive(side, qp int, w *Send, format string, args ...any) {
	s.see(side, ofReceives+qp+(ofSecond-ofReceives)*s.p.queue(w.To), format, args...)
}

func (s *state) completeSend(side, qp int, w *Send, status int) {
	switch {
	case status != success:
		s.see(side, ofSends+qp, "%d status %d", w.ID, status)
	case s.p.SigAll || w.Flags&signaled != 0:
		s.see(side, ofSends+qp, "%d %d", w.ID, opcodes[w.Opcode].completion)
	}
}

// acknowledge completes the first n sends, which have been carried out.
func (s *state) acknowledge(side, qp, n int) {
	p := &s.pairs[side][qp]
	for i := range n {
		if w := &p.sends[i]; w.result != nil {
			s.scatter(side, w.Elements, *w.result)
		}
		s.completeSend(side, qp, &p.sends[i], success)
	}
	p.sends, p.done, p.begun = p.sends[n:], p.done-n, max(p.begun-n, 0)
}

// fail moves a queue pair to the error state.
func (s *state) fail(side, qp int) {
	p := &s.pairs[side][qp]
	if p.state == stateErr || p.destroyed {
		return
	}
	p.state = stateErr
	s.flush(side, qp)
	if s.p.SRQ && !s.p.XRC {
		s.see(side, ofLast+qp, "event %d", eventLast)
	}
}

func (s *state) flush(side, qp int) {
	s.flushSends(side, qp)
	p := &s.pairs[side][qp]
	for _, r := range p.receives {
		s.see(side, ofReceives+qp, "%d status %d", r.ID, flushed)
	}
	p.receives = nil
}

func (s *state) flushSends(side, qp int) {
	p := &s.pairs[side][qp]
	for i := range p.sends {
		w := &p.sends[i]
		if w.reads() { // a part of its data may have arrived
			s.forgetResults(side, w)
		}
		s.completeSend(side, qp, w, flushed)
	}
	p.sends, p.done, p.begun, p.refusal = nil, 0, 0, 0
}

// forgetResults makes the bytes unknown that a Read or an atomic may have written to the side's own memory.
func (s *state) forgetResults(side int, w *Send) {
	for _, e := range w.Elements {
		if s.local(side, e, localWrite) {
			s.memory[side].forget(e.Offset, e.Length)
		}
	}
}

// failSend completes the oldest send, which has not been acknowledged, with an error, and flushes the rest.
func (s *state) failSend(side, qp, status int) {
	p := &s.pairs[side][qp]
	w := &p.sends[0]
	p.sends, p.done = p.sends[1:], 0
	s.completeSend(side, qp, w, status)
	s.fail(side, qp)
}

// refuse lets the peer refuse the send after those that were carried out, with an event to its own program. The
// sender learns of it later.
func (s state) refuse(side, qp, status, event int) []state {
	if event != 0 {
		s.see(1-side, ofErrors+qp, "event %d", event)
	}
	s.fail(1-side, qp)
	s.pairs[side][qp].refusal = status
	return []state{s}
}

// hearRefusal returns the possible results for the sends when the refusal arrives.
func (s state) hearRefusal(side, qp int) (next []state) {
	status := s.pairs[side][qp].refusal
	for _, n := range s.acknowledgeBeforeRefusal(side, qp) {
		n.failSend(side, qp, status)
		next = append(next, n)
	}
	return next
}

// most bounds the states of an exploration. Few programs of new seeds have more, such as those with many datagrams
// that may overtake each other.
const most = 20_000

// explore returns all possible states after calls that returned errnos, when nothing more must happen. It returns false
// if they are too many.
func explore(from []state, calls []Call, errnos []syscall.Errno) (settled []state, ok bool) {
	type node struct {
		s    state
		next int
	}
	known := map[string]bool{}
	var todo []node
	add := func(n node) {
		if k := fmt.Sprint(n.next, " ", n.s.key()); !known[k] {
			known[k] = true
			todo = append(todo, n)
		}
	}
	for _, s := range from {
		add(node{s, 0})
	}
	for len(todo) > 0 {
		if len(known) > most {
			return nil, false
		}
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.next < len(calls) {
			for _, r := range n.s.call(calls[n.next]) {
				if r.errno == errnos[n.next] {
					add(node{r.s, n.next + 1})
				}
			}
		}
		steps, must := n.s.steps()
		for _, s := range steps {
			add(node{s, n.next})
		}
		if n.next == len(calls) && !must {
			settled = append(settled, n.s)
		}
	}
	return settled, true
}
