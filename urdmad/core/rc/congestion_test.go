package rc

import (
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/wire/roce"
)

// TestCongestion: two senders share a bottleneck whose router marks packets when its queue is long, and drops them
// when it is full. If senders are notified, nothing is lost once they have found their share, the queue stays short,
// and the line is busy. Otherwise much is lost.
func TestCongestion(t *testing.T) {
	with, without := runBottleneck(t, true), runBottleneck(t, false)
	if with.lost != 0 || with.longest > bottleneckFull*3/4 || with.busy < 0.9 || with.fair < 0.5 {
		t.Errorf("with notices: %+v", with)
	}
	if without.lost == 0 {
		t.Errorf("without: %+v", without)
	}
	t.Logf("with notices %+v, without %+v", with, without)
}

const (
	bottleneckMarks = 20 // waiting packets
	bottleneckFull  = 100
	packetTime      = clock.Microsecond // on the line
	wayTime         = 20 * clock.Microsecond
)

type bottleneck struct {
	lost, longest int
	busy          float64 // share of the line's time
	fair          float64 // of the sender that got less, relative to the other
}

// runBottleneck returns the results of the second half of a run.
func runBottleneck(t *testing.T, notices bool) (found bottleneck) {
	type arrival struct {
		at     clock.Time
		sender int
		notice bool
		p      Request
		psn    roce.PSN
		aeth   roce.AETH
	}
	var stats Stats
	var senders [2]Requester
	var receivers [2]Responder
	var quiet [2]clock.Time
	var there, back []arrival // packets that have left the queue, and answers: both in order of time
	var queue []arrival
	var got [2]int
	for i := range senders {
		senders[i].Init(Config{MTU: 1024, Reads: 1, Timeout: clock.Second, Retries: NoLimit, RNRRetries: NoLimit}, &stats)
		receivers[i].Init(0, 1024, 1, &stats)
	}
	const end = 80 * clock.Millisecond
	for now := clock.Time(0); now < end; now += packetTime {
		counts := now > end/2
		for i := range senders {
			r := &senders[i]
			r.Tick(now)
			for {
				if !r.Waiting() {
					r.Begin(0, Data, 1<<20)
				}
				p, ok := r.Next(now)
				if !ok {
					break
				}
				r.Sent(now, &p)
				if len(queue) == bottleneckFull {
					if counts {
						found.lost++
					}
					continue
				}
				queue = append(queue, arrival{sender: i, p: p, notice: len(queue) >= bottleneckMarks})
			}
		}
		if counts {
			found.longest = max(found.longest, len(queue))
		}
		if len(queue) > 0 {
			queue[0].at = now + wayTime
			there, queue = append(there, queue[0]), queue[1:]
			if counts {
				found.busy++
			}
		}
		for len(there) > 0 && there[0].at <= now {
			p := &there[0]
			r := &receivers[p.sender]
			if notices && p.notice && now >= quiet[p.sender] {
				quiet[p.sender] = now + 50*clock.Microsecond
				back = append(back, arrival{at: now + wayTime, sender: p.sender, notice: true})
			}
			a := Arrival{Opcode: opcodeOf(roce.SendOnly, p.p.First, p.p.Last), PSN: p.p.PSN, Size: p.p.Length,
				AckReq: p.p.AckReq}
			if do, _ := r.Judge(&a); do == Deliver {
				r.Delivered(&a)
				if counts {
					got[p.sender]++
				}
			}
			if psn, aeth, ok := r.Reply(^uint64(0)); ok {
				back = append(back, arrival{at: now + wayTime, sender: p.sender, psn: psn, aeth: aeth})
				r.Replied(psn)
			}
			there = there[1:]
		}
		for len(back) > 0 && back[0].at <= now {
			if b := &back[0]; b.notice {
				senders[b.sender].Congested()
			} else {
				senders[b.sender].Acknowledgement(now, b.psn, b.aeth.Syndrome)
			}
			back = back[1:]
		}
	}
	found.busy /= float64(end / 2 / packetTime)
	found.fair = float64(min(got[0], got[1])) / float64(max(got[0], got[1], 1))
	return found
}
