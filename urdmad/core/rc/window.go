package rc

const (
	// mostUnderWay and leastUnderWay bound how many packets may be sent, or requested by Reads, before they
	// are acknowledged or have arrived.
	mostUnderWay  = 256
	leastUnderWay = 8
	// readPackets is how many packets one request for a part of a Read asks for: a long Read is divided, so
	// that the window bounds it too.
	readPackets = 32
)

// window is how many packets may be in flight. It grows by one for each window that was acknowledged. Loss
// halves it, once for all packets in flight. A congestion notification takes away half of the recent share
// of windows with notifications, as DCTCP does with marks (RFC 8257): the first one halves the window, and
// where notifications are rare they cost little.
type window struct {
	size, most int
	credit     int      // packets acknowledged since it last grew
	until      Sequence // end of the packets in flight at the last loss; 0: nothing was lost yet

	saved      int // size and until before a loss that may be undone
	savedUntil Sequence

	noticed bool     // a notification arrived in this window
	share   int      // share of windows with notifications, in units of shareOne
	eased   Sequence // end of the packets in flight at the last notification that counted; 0: there was none
}

// shareOne is a share of 100 %; 1/shareGain is the weight of each window in the average.
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

// save keeps the window for restore, which undoes a presumed loss.
func (w *window) save() { w.saved, w.savedUntil = w.size, w.until }

func (w *window) restore() { w.size, w.until = w.saved, w.savedUntil }

// notice handles a congestion notification, once for all packets in flight.
func (w *window) notice(oldest, next Sequence) {
	w.noticed = true
	if oldest >= w.eased {
		w.size = max(w.size-w.size*w.share/(2*shareOne), leastUnderWay)
		w.share += (shareOne - w.share) / shareGain
		w.credit = 0
		w.eased = next
	}
}

// Congested records that packets of the connection met a queue in the network.
func (r *Requester) Congested() {
	if r.acked != r.sent {
		r.window.notice(r.acked, r.sent)
	}
}

// UnderWay returns how many packets are in flight (sent or requested, and not acknowledged), and how many
// may be.
func (r *Requester) UnderWay() (n, most int) { return int(r.next - r.acked), r.window.size }
