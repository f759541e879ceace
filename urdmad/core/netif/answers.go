package netif

import "urdma/urdmad/core/clock"

// answers bounds how many questions of a kind are answered: anybody may send some, under
// any address. Of probes each path takes a hundred or so, once.
type answers struct {
	since clock.Time
	n     int // since then
}

const (
	answersPerPause = 1000
	answersPause    = 100 * clock.Millisecond
)

// answered is what an interface has answered, by kind, so that a flood of one kind takes
// nothing from the others.
type answered struct {
	probes, echoes, neighbours answers
}

// one reports whether one more may go.
func (a *answers) one(now clock.Time) bool {
	if now-a.since >= answersPause {
		*a = answers{since: now}
	}
	a.n++
	return a.n <= answersPerPause
}
