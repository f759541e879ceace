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

// window is how many packets may be under way. It grows by one for each window that has
// arrived. Loss halves it, once for all that was under way. A notice of congestion takes
// away half of the share of windows with notices lately, as DCTCP does with marks
// (RFC 8257): the first one halves it, and where they are rare they cost little.
type window struct {
	size, most int
	credit     int      // packets that have arrived since it grew
	until      Sequence // what was under way at the last loss ends here; 0: nothing was lost yet

	saved      int // size and until before what may have been no loss
	savedUntil Sequence

	noticed bool     // in this window
	share   int      // of windows with notices, of shareOne
	eased   Sequence // what was under way at the last notice that counted ends here; 0: there was none
}

// shareOne is a share of all, and shareGain by which part of the difference each window
// moves it.
const (
	shareOne  = 1024
	shareGain = 16
)

func (w *window) init(most int) {
	if most == 0 {
		most = mostUnderWay
	}
	w.most = max(most, leastUnderWay)
	w.size, w.share = min(w.most, mostUnderWay/4), shareOne
}

func (w *window) arrived(n int) {
	w.credit += n
	for w.credit >= w.size {
		w.credit -= w.size
		w.size = min(w.size+1, w.most)
		if w.until == 0 && w.eased == 0 {
			w.size = min(w.size*2, w.most)
		}
		if !w.noticed && w.eased != 0 {
			w.share -= w.share / shareGain
		}
		w.noticed = false
	}
}

func (w *window) lost(oldest, next Sequence) {
	if oldest >= w.until {
		w.size = max(w.size/2, leastUnderWay)
		w.credit = 0
		w.until = next
	}
}

// save keeps the window for restore, which takes a loss back that was none.
func (w *window) save() { w.saved, w.savedUntil = w.size, w.until }

func (w *window) restore() { w.size, w.until = w.saved, w.savedUntil }

// notice takes a notice of congestion, once for all that was under way.
func (w *window) notice(oldest, next Sequence) {
	w.noticed = true
	if oldest >= w.eased {
		w.size = max(w.size-w.size*w.share/(2*shareOne), leastUnderWay)
		w.share += (shareOne - w.share) / shareGain
		w.credit = 0
		w.eased = next
	}
}

// Congested notes that packets of the connection meet a queue on their way.
func (r *Requester) Congested() {
	if r.acked != r.sent {
		r.window.notice(r.acked, r.sent)
	}
}

// UnderWay is how many packets were sent, or asked for, and not acknowledged, and how
// many may be.
func (r *Requester) UnderWay() (n, most int) { return int(r.next - r.acked), r.window.size }
