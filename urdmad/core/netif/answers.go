package netif

import "urdma/urdmad/core/clock"

// answers bounds how many requests of one kind are answered per time: anyone may send them, under any
// address. Path MTU discovery sends about a hundred probes per path, once.
type answers struct {
	since clock.Time
	n     int // answered since then
}

const (
	answersPerPause = 1000
	answersPause    = 100 * clock.Millisecond
)

// answered has the bounds of an interface by kind of request, so that a flood of one kind does not affect
// the others.
type answered struct {
	probes, echoes, neighbours answers
}

// one reports whether one more answer may be sent.
func (a *answers) one(now clock.Time) bool {
	if now-a.since >= answersPause {
		*a = answers{since: now}
	}
	a.n++
	return a.n <= answersPerPause
}
