package engine

import (
	"errors"
	"fmt"

	"urdma/dpdk/port"
	"urdma/reason"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/fault"
	"urdma/urdmad/core/qp"
)

// maxBursts is the largest number of bursts taken from a port in one turn, so that posts and
// timers get their share under load.
const maxBursts = 4

// Turn is one turn of the poll loop at time now: it does all present work, in the order that lets
// peers and clients continue soonest. It reports whether there was work, and when the next timer
// is due.
func (e *Engine) Turn(now clock.Time) (busy bool, deadline clock.Time) {
	e.Clock.Now = now
	e.Stats.Turns++
	n := e.guarded()
	if n > 0 {
		e.Stats.BusyTurns++
		e.blocked = 0
	} else if e.QPs.Waiting() > 0 {
		return false, min(e.Clock.Next(), now+e.retryBlocked())
	}
	return n > 0 || e.QPs.Waiting() > 0, e.Clock.Next()
}

func (e *Engine) runStages() (n int) {
	for e.taken = append(e.taken, e.calls.Take()...); len(e.taken) > 0; n++ {
		call := e.taken[0]
		e.taken = e.taken[1:] // before the call, because a fault in it ends the turn
		call()
	}
	n += e.Datagrams.Serve()
	e.MPA.Look()
	for _, p := range e.ports {
		if !p.idle(e.Stats.Turns) {
			got := e.receive(p)
			p.recent = got > 0
			n += got
		}
	}
	n += e.MPA.Poll()
	n += e.QPs.FinishJobs()
	n += e.answerBells(e.QPs.Rung)
	n += e.Clock.Run(e.Clock.Now)
	n += e.QPs.Transmit()
	for _, p := range e.ports {
		p.recent = p.recent || p.If.Unsent()
		p.If.Flush()
	}
	e.wakeWaiting()
	return n
}

// everyIdle is the number of turns after which even an idle port is polled once, to send packets
// that its socket had no room for.
const everyIdle = 64

// idle reports whether a port can be skipped in a turn: the kernel, asked once for the sockets of
// all connections, says that nothing is there to read.
func (p *ifPort) idle(turn uint64) bool {
	return p.socket != nil && !p.socket.Readable && !p.recent && turn%everyIdle != 0
}

// Visit lets another goroutine work between two turns, while the worker sleeps: it runs fn, and
// then the timers that fn has made due at once. It reports whether the worker has work now, and
// when the next timer is due.
func (e *Engine) Visit(now clock.Time, fn func()) (work bool, deadline clock.Time) {
	e.Clock.Now = now
	if addr, faulted := fault.Guard(func() { fn(); e.Clock.RunSoon() }, nil); faulted {
		e.faulted(addr)
		return true, 0
	}
	e.wakeWaiting()
	work = e.QPs.Waiting() > 0 || e.calls.Full()
	for _, p := range e.ports {
		work = work || p.If.Unsent()
	}
	return work, e.Clock.Next()
}

// receive handles the packets of a port, up to maxBursts bursts. Between bursts it sends short
// single messages that were posted meanwhile, so that they need not wait for the other bursts.
// The bursts still follow soon, because otherwise clients that post all the time would let the
// port's ring overflow.
//
// One datagram may complete thousands of sends. If the turn's budget is used up, the rest of the
// burst is handled in the next turn.
func (e *Engine) receive(p *ifPort) (total int) {
	begun := e.QPs.Spent()
	for burst := range maxBursts {
		if burst > 0 && e.rung() {
			total += e.sendBetween()
		}
		waiting, more := p.If.Poll()
		if waiting == 0 {
			break
		}
		total += waiting
		if !e.handle(p, begun) || !more {
			break
		}
	}
	return total
}

// maxBetween limits the sending between two bursts: the number of queue pairs that send, and the
// number of packets after which no further queue pair does. The others send at the end of the
// turn.
const maxBetween = 32

// sendBetween answers doorbells and sends single posts. It answers all doorbells first, because a
// fault in client memory ends the sending and must not lose unanswered doorbells.
func (e *Engine) sendBetween() (n int) {
	single := e.single[:0]
	n = e.answerBells(func(q *qp.QP) {
		if e.QPs.PostSingle(q) && len(single) < maxBetween {
			single = append(single, q)
		}
	})
	e.single = single
	sent := 0
	for i := 0; i < len(single) && sent < maxBetween; i++ {
		sent += e.QPs.SendNow(single[i])
	}
	clear(single)
	if sent > 0 {
		for _, p := range e.ports {
			p.If.Flush()
		}
	}
	return n
}

// handle handles the datagrams of the interface's current burst. It returns false if datagrams
// are left and the budget is used up; begun is the value of Spent at the budget's start.
func (e *Engine) handle(p *ifPort, begun int) bool {
	for d := p.If.Next(); d != nil; d = p.If.Next() {
		if p.roce != nil {
			p.roce.Receive(d)
		} else {
			p.Receive(d)
		}
		e.QPs.Serving = nil
		if e.QPs.Overspent(begun) {
			return false
		}
	}
	return true
}

// Shortest and longest pause before work that a full port has blocked is tried again: a link that
// is down must not keep a core busy.
const (
	minBlocked = 5 * clock.Microsecond
	maxBlocked = clock.Millisecond
)

// retryBlocked returns how long to wait when all work to send was blocked.
func (e *Engine) retryBlocked() clock.Time {
	wait := min(minBlocked<<min(e.blocked, 10), maxBlocked)
	e.blocked++
	return wait
}

// guarded runs the stages of a turn. A fault in a client's memory ends that client instead of
// urdmad, and so does a panic that concerns that client alone (panic.go). The interrupted stage's
// unfinished work belongs to that client's queue pairs; the other stages run in the next turn.
func (e *Engine) guarded() (n int) {
	n = 1 // if a panic ends the stages
	if addr, faulted := fault.Guard(func() { n = e.runStages() }, e.contained); faulted {
		e.faulted(addr)
	}
	return n
}

// faulted ends the client whose memory could not be accessed.
func (e *Engine) faulted(addr uintptr) {
	for _, c := range e.clients {
		if c.Space.Contains(addr) {
			e.Stats.ClientFaults++
			e.endFaulty(c, reason.Memory, errClientMemory)
			e.QPs.Resume()
			return
		}
	}
	panic(fmt.Sprintf("engine: fault at %#x, which is no client's memory", addr))
}

var errClientMemory = errors.New("engine: client memory cannot be accessed")

// PrepareSleep tells clients that posts must use the kick socket from now on, and arms the ports'
// interrupts. ok is false if work has appeared. out has the descriptors to wait for in addition
// to the kick sockets; timed means that some port has no interrupt, so that the wait must be
// short.
func (e *Engine) PrepareSleep(fds []int) (out []int, timed, ok bool) {
	if e.setSleeping(true) || e.calls.Full() || e.QPs.FallbackEnded() {
		e.Woke()
		return fds, false, false
	}
	if fd := e.MPA.Descriptor(); fd >= 0 {
		fds = append(fds, fd)
	}
	for _, p := range e.ports {
		// a watched socket had nothing to read; MPA's descriptor wakes the worker for it
		if !p.If.Receives() || p.socket != nil && !p.recent {
			continue
		}
		fd, armed := p.If.ArmRx()
		if !armed {
			p.recent = true
			e.Woke()
			return fds, false, false
		}
		p.armed = true
		switch {
		case fd == port.Woken:
		case fd < 0:
			timed = true
		case p.socket == nil: // else MPA's descriptor covers it
			fds = append(fds, fd)
			if p.overTCP && !p.If.Siblings() { // siblings' packets do not make this socket readable
				p.socket = e.MPA.WatchReadable(fd)
			}
		}
	}
	return fds, timed, true
}

// Woke undoes PrepareSleep.
func (e *Engine) Woke() {
	e.setSleeping(false)
	for _, p := range e.ports {
		if p.armed {
			p.If.DisarmRx()
			p.armed = false
		}
	}
}
