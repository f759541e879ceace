package roce

import "urdma/urdmad/core/clock"

// pace is the sending rate of a queue pair of type UD or UC after congestion notifications (annex A17).
// Nothing is acknowledged, so there is no window to shrink: a notification halves the rate. As with DCQCN,
// each step without a notification restores half of the difference, a few times, and later steps add a
// constant.
type pace struct {
	rate, target float64    // bytes per nanosecond; 0: not limited
	next         clock.Time // when the next packet may be sent
	heard        clock.Time // when the last notification counted
	stepped      clock.Time
	steps        int // since the last notification

	since clock.Time // when the measurement of sent bytes began
	bytes int
}

const (
	paceQuiet = noticeEvery             // a notification this soon after another does not count
	paceStep  = 300 * clock.Microsecond // interval between steps
	paceHalf  = 5                       // steps that restore half of the difference
	paceMore  = 0.005                   // rate added by later steps: 5 MB/s
	paceEnd   = 100 * clock.Millisecond // time without notifications after which the limit ends
	paceLeast = 0.001                   // least rate: 1 MB/s
	paceSlack = 20 * clock.Microsecond  // how early packets may be sent
	paceSpan  = clock.Millisecond       // interval over which the sending rate is measured
)

// noticed handles a notification.
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

// recover applies the steps that are due.
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

// holds returns until when nothing may be sent; ok is false if a packet may be sent now.
func (p *pace) holds(now clock.Time) (until clock.Time, ok bool) {
	p.recover(now)
	return p.next - paceSlack, p.rate != 0 && p.next > now+paceSlack
}

// left records that a packet of n bytes was sent.
func (p *pace) left(now clock.Time, n int) {
	if p.rate != 0 {
		p.next = max(p.next, now) + clock.Time(float64(n)/p.rate)
	}
	if now >= p.since+paceSpan {
		p.since, p.bytes = now, 0
	}
	p.bytes += n
}
