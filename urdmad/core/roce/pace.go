package roce

import "urdma/urdmad/core/clock"

// pace is how fast a queue pair of type UD or UC sends over RoCEv2 once it was told that
// routers mark its packets (annex A17.9). Nothing is acknowledged, so there is no window
// that could shrink: a notice halves the rate, and as with DCQCN half of the difference
// comes back with each step without one, a few times, then a little more with each.
type pace struct {
	rate, target float64    // bytes a nanosecond; 0: it is not held back
	next         clock.Time // when the next packet may leave
	heard        clock.Time // the last notice that counted
	stepped      clock.Time
	steps        int // since the last notice

	since clock.Time // what has left since
	bytes int
}

const (
	paceQuiet = noticeEvery             // a notice within this after another does not count
	paceStep  = 300 * clock.Microsecond // between steps
	paceHalf  = 5                       // steps that bring back half of the difference
	paceMore  = 0.005                   // what later ones add: 5 MB/s
	paceEnd   = 100 * clock.Millisecond // without notices: it is not held back any longer
	paceLeast = 0.001                   // 1 MB/s
	paceSlack = 20 * clock.Microsecond  // how far packets may leave ahead of time
	paceSpan  = clock.Millisecond       // over which what leaves is measured
)

// noticed takes a notice.
func (p *pace) noticed(now clock.Time) {
	if p.rate != 0 && now < p.heard+paceQuiet {
		return
	}
	p.recover(now)
	if p.rate == 0 {
		p.rate, p.next = float64(p.bytes)/float64(max(now-p.since, paceQuiet)), now
	}
	p.target = p.rate
	p.rate = max(p.rate/2, paceLeast)
	p.heard, p.stepped, p.steps = now, now, 0
}

// recover takes the steps that are due.
func (p *pace) recover(now clock.Time) {
	if p.rate == 0 {
		return
	}
	if now >= p.heard+paceEnd {
		p.rate = 0
	}
	for ; p.rate != 0 && now >= p.stepped+paceStep; p.stepped += paceStep {
		if p.steps++; p.steps > paceHalf {
			p.target += paceMore
		}
		p.rate = (p.rate + p.target) / 2
	}
}

// holds says until when nothing may leave; ok is false if something may.
func (p *pace) holds(now clock.Time) (until clock.Time, ok bool) {
	p.recover(now)
	return p.next - paceSlack, p.rate != 0 && p.next > now+paceSlack
}

// left notes that a packet of n bytes did.
func (p *pace) left(now clock.Time, n int) {
	if p.rate != 0 {
		p.next = max(p.next, now) + clock.Time(float64(n)/p.rate)
	}
	if now >= p.since+paceSpan {
		p.since, p.bytes = now, 0
	}
	p.bytes += n
}
