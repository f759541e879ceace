package engine

import (
	"fmt"
	"runtime"

	"urdma/verbs/abi"
)

// rxTurns bounds how many bursts one turn takes from a port, so that posts and
// timers get their share under load.
const rxBursts = 4

// Turn is one turn of the poll loop: everything there is to do at time now, in
// the order in which it helps a peer or a client go on. It reports whether
// there was anything, and when the next timer is due.
func (e *Engine) Turn(now Time) (busy bool, deadline Time) {
	e.now = now
	e.Stats.Turns++
	n := e.guarded()
	if n > 0 {
		e.Stats.BusyTurns++
	}
	if n > 0 {
		e.blocked = 0
	} else if e.runq.len() > 0 {
		return false, min(e.timers.Next(), now+e.retryBlocked())
	}
	return n > 0 || e.runq.len() > 0, e.timers.Next()
}

// Longest and shortest pause before work that a full port holds up is tried
// again: a link that is down must not keep a core busy.
const (
	blockedLeast = Time(5e3)
	blockedMost  = Time(1e6)
)

// retryBlocked is how long to wait when all there is to send was held up.
func (e *Engine) retryBlocked() Time {
	wait := min(blockedLeast<<min(e.blocked, 10), blockedMost)
	e.blocked++
	return wait
}

// guarded runs the stages and turns a fault in a client's memory into the end
// of that client. What the faulting stage left undone belongs to that client's
// queue pairs; the other stages run in the next turn.
func (e *Engine) guarded() (n int) {
	defer func() {
		if r := recover(); r != nil {
			e.faulted(r)
			n = 1
		}
	}()
	return e.stages()
}

func (e *Engine) stages() (n int) {
	for _, call := range e.calls.take() {
		call()
		n++
	}
	for _, p := range e.ports {
		n += e.receive(p)
	}
	n += e.settle()
	n += e.answerBells()
	n += e.timers.Run(e.now)
	n += e.transmit()
	for _, p := range e.ports {
		p.flush()
	}
	return n
}

// faulted ends the client whose memory could not be touched. A panic that is
// not a fault in a client's memory is a bug and goes on.
func (e *Engine) faulted(r any) {
	err, ok := r.(runtime.Error)
	at, isFault := r.(interface{ Addr() uintptr })
	if !ok || !isFault {
		panic(r)
	}
	for _, c := range e.clients {
		if c.Space.Contains(at.Addr()) {
			e.Stats.ClientFaults++
			e.endFaulty(c, err)
			return
		}
	}
	panic(r)
}

func (e *Engine) endFaulty(c *Client, err error) {
	if c.faulty {
		return
	}
	c.faulty = true
	e.failClient(c)
	e.log.Error("client memory cannot be touched; closing the client", "client", c.Name, "error", err)
	if c.Fault != nil {
		c.Fault(fmt.Errorf("engine: client memory: %w", err))
	}
}

// failClient ends the queue pairs of a client whose memory is gone. A segment
// that could not be placed must not count as received.
func (e *Engine) failClient(c *Client) {
	for _, qp := range e.qps {
		if qp.Client != c {
			continue
		}
		if conn := qp.conn; conn != nil && conn.placing && !conn.frozen {
			conn.frozen, conn.ackFrozen = true, conn.placingPSN
		}
		e.failQP(qp, abi.EventQPFatal)
	}
}

// PrepareSleep announces to clients that posts must kick from now on, and arms
// the ports. ok is false when work has appeared. fds are what to wait for
// beside the kick sockets, timed means some port has no interrupt and the wait
// must be short.
func (e *Engine) PrepareSleep(fds []int) (out []int, timed, ok bool) {
	if e.setSleeping(true) || e.calls.full.Load() || e.settled.full.Load() {
		e.Woke()
		return fds, false, false
	}
	for _, p := range e.ports {
		if !p.info.Wire {
			continue
		}
		fd, armed := p.queue.ArmRx()
		if !armed {
			e.Woke()
			return fds, false, false
		}
		p.armed = true
		if fd < 0 {
			timed = true
		} else {
			fds = append(fds, fd)
		}
	}
	return fds, timed, true
}

// Woke undoes PrepareSleep.
func (e *Engine) Woke() {
	e.setSleeping(false)
	for _, p := range e.ports {
		if p.armed {
			p.queue.DisarmRx()
			p.armed = false
		}
	}
}
