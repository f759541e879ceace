package engine

import (
	"errors"
	"fmt"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/fault"
	"urdma/urdmad/core/qp"
)

// maxBursts bounds how many bursts one turn takes from a port, so that posts and
// timers get their share under load.
const maxBursts = 4

// Turn is one turn of the poll loop: everything there is to do at time now, in
// the order in which it helps a peer or a client go on. It reports whether
// there was anything, and when the next timer is due.
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

func (e *Engine) stages() (n int) {
	for _, call := range e.calls.Take() {
		call()
		n++
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

// everyIdle is in how many turns an idle port is looked at once all the same: that sends
// what its socket had no room for.
const everyIdle = 64

// idle reports that a port need not be asked in a turn: the kernel, which is asked about
// the sockets of all connections at once, says that it has nothing.
func (p *ifPort) idle(turn uint64) bool {
	return p.socket != nil && !p.socket.Readable && !p.recent && turn%everyIdle != 0
}

// Visit is for another goroutine that works between two turns, in the place of a worker that
// sleeps: fn, and what that has done soon. It reports whether the worker has work
// now, and when the next timer is due.
func (e *Engine) Visit(now clock.Time, fn func()) (work bool, deadline clock.Time) {
	e.Clock.Now = now
	if addr, faulted := fault.Guard(func() { fn(); e.Clock.RunSoon() }); faulted {
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

// receive handles what a port has, a few bursts at most. Between them it sends what
// queue pairs with nothing under way have posted meanwhile: one short message after the
// other, which is not to wait for the other bursts. The port gets its bursts all the
// same, soon, or clients that post all the time would have its ring overflow.
//
// One datagram may complete thousands of sends. What is left of a burst when the turn's
// budget is spent is handled in the next.
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

// maxBetween bounds what is sent between two bursts: the queue pairs that send, and the
// packets from which on no other one does. The others send at the end of the turn.
const maxBetween = 32

// sendBetween answers bells, and sends what was posted alone. All bells come first: a
// fault in a client's memory ends the sending, and must not take unanswered ones along.
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

// handle handles the datagrams of the interface's burst; false: there are others, and the
// budget that began when so much was spent is used up.
func (e *Engine) handle(p *ifPort, begun int) bool {
	for d := p.If.Next(); d != nil; d = p.If.Next() {
		if p.roce != nil {
			p.roce.Receive(d)
		} else {
			p.Receive(d)
		}
		if e.QPs.Overspent(begun) {
			return false
		}
	}
	return true
}

// Longest and shortest pause before work that a full port holds up is tried
// again: a link that is down must not keep a core busy.
const (
	minBlocked = 5 * clock.Microsecond
	maxBlocked = clock.Millisecond
)

// retryBlocked is how long to wait when all there is to send was held up.
func (e *Engine) retryBlocked() clock.Time {
	wait := min(minBlocked<<min(e.blocked, 10), maxBlocked)
	e.blocked++
	return wait
}

// guarded runs the stages and turns a fault in a client's memory into the end
// of that client. What the faulting stage left undone belongs to that client's
// queue pairs; the other stages run in the next turn.
func (e *Engine) guarded() (n int) {
	if addr, faulted := fault.Guard(func() { n = e.stages() }); faulted {
		e.faulted(addr)
		return 1
	}
	return n
}

// faulted ends the client whose memory could not be touched.
func (e *Engine) faulted(addr uintptr) {
	for _, c := range e.clients {
		if c.Space.Contains(addr) {
			e.Stats.ClientFaults++
			e.endFaulty(c)
			e.QPs.Resume()
			return
		}
	}
	panic(fmt.Sprintf("engine: fault at %#x, which is no client's memory", addr))
}

func (e *Engine) endFaulty(c *Client) {
	e.QPs.FailClient(&c.Client)
	if c.faulty {
		return
	}
	c.faulty = true
	e.log.Error("client memory cannot be touched; closing the client", "client", c.Name)
	if c.Fault != nil {
		c.Fault(errClientMemory)
	}
}

var errClientMemory = errors.New("engine: client memory cannot be touched")

// PrepareSleep announces to clients that posts must kick from now on, and arms
// the ports. ok is false when work has appeared. fds are what to wait for
// beside the kick sockets, timed means some port has no interrupt and the wait
// must be short.
func (e *Engine) PrepareSleep(fds []int) (out []int, timed, ok bool) {
	if e.setSleeping(true) || e.calls.Full() || e.QPs.FallbackEnded() {
		e.Woke()
		return fds, false, false
	}
	if fd := e.MPA.Descriptor(); fd >= 0 {
		fds = append(fds, fd)
	}
	for _, p := range e.ports {
		if !p.If.Receives() || p.socket != nil && !p.recent { // the latter had nothing, and wakes along with the connections' sockets
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
		case p.socket == nil: // else it is in the set of the connections' sockets
			fds = append(fds, fd)
			if p.overTCP && !p.If.Siblings() { // whose packets the socket says nothing of
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
