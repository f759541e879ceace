package rc

const (
	// mostUnderWay and leastUnderWay bound, in packets, what is sent before it is
	// acknowledged, or asked for before it has come.
	mostUnderWay  = 256
	leastUnderWay = 8
	// readPackets is how many packets one request for a part of a Read asks for: a
	// long Read is asked for in parts, so that the window bounds it too.
	readPackets = 32
)

// window is how many packets may be under way. There is no other sign of congestion
// than loss: then it halves, once for all that was under way, and grows by one for each
// window that has arrived.
type window struct {
	size, most int
	credit     int      // packets that have arrived since it grew
	until      Sequence // what was under way at the last loss ends here
}

func (w *window) init(most int) {
	if most == 0 {
		most = mostUnderWay
	}
	w.most = max(most, leastUnderWay)
	w.size = min(w.most, mostUnderWay/4)
}

func (w *window) arrived(n int) {
	w.credit += n
	for w.credit >= w.size {
		w.credit -= w.size
		w.size = min(w.size+1, w.most)
		if w.until == 0 { // nothing was lost yet
			w.size = min(w.size*2, w.most)
		}
	}
}

func (w *window) lost(oldest, next Sequence) {
	if oldest >= w.until {
		w.size = max(w.size/2, leastUnderWay)
		w.credit = 0
		w.until = next
	}
}

// UnderWay is how many packets were sent, or asked for, and not acknowledged, and how
// many may be.
func (r *Requester) UnderWay() (n, most int) { return int(r.next - r.acked), r.window.size }
