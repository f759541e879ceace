package reliable

import "urdma/wire"

// segment is the record of one unacknowledged segment, 32 bytes.
type segment struct {
	token uint64
	sent  Time   // last transmission
	order uint32 // transmission number of that; orders all transmissions of the connection
	prev  uint32 // flight list
	next  uint32
	sends uint8 // transmissions, saturating
}

// sender is the sending half. Each PSN in [una, next) is in exactly one of
// three states: in flight (on the flight list), lost (waiting to be resent),
// or sacked (received by the peer out of order). So
//
//	flight + nLost + nSacked == next - una <= window
type sender struct {
	una     wire.PSN // first unacknowledged
	next    wire.PSN // next new
	limit   wire.PSN // one past the last the peer's credits allow
	credits uint32   // as stated last

	records         // as many as rings.go says
	window  int     // Config.Window: the most there get
	least   records // the fewest, which stay
	needed  int     // length of the ring that was given back, as far as it was used
	most    int     // outstanding since then
	flight  int

	nSacked int
	nLost   int
	order   uint32 // number of the last transmission

	// probe is a segment to resend whatever the congestion window says: the
	// tail probe or the head after a timeout.
	probe    wire.PSN
	hasProbe bool

	wantAR bool     // the packet just recorded asks for acknowledgement
	lastAR wire.PSN // the last new segment that did
}

func (t *sender) init(cfg *Config) {
	t.una, t.next = cfg.LocalISN, cfg.LocalISN
	t.lastAR = cfg.LocalISN
	t.credits = uint32(cfg.PeerWindow)
	t.limit = cfg.LocalISN.Add(t.credits)
	t.window = cfg.Window
	t.least = newRecords(min(leastRing, cfg.Window))
	t.setRing(t.least)
}

func (t *sender) at(p wire.PSN) *segment  { return &t.segs[t.index(p)] }
func (t *sender) outstanding() int        { return int(t.next.Sub(t.una)) }
func (t *sender) psnOf(i uint32) wire.PSN { return t.una.Add((i - uint32(t.una)) & t.mask()) }
func (t *sender) holds(p wire.PSN) bool   { return !p.Before(t.una) && p.Before(t.next) }

// link puts slot i on the flight list after slot at, unlink takes it off.
func (t *sender) link(i, at uint32) {
	after := t.segs[at].next
	t.segs[i].prev, t.segs[i].next = at, after
	t.segs[at].next, t.segs[after].prev = i, i
	t.flight++
}

func (t *sender) unlink(i uint32) {
	s := &t.segs[i]
	t.segs[s.prev].next, t.segs[s.next].prev = s.next, s.prev
	t.flight--
}

// transmit records that slot i goes out now, as the newest transmission.
func (t *sender) transmit(now Time, i uint32) {
	t.order++
	s := &t.segs[i]
	s.sent, s.order = now, t.order
	if s.sends < 255 {
		s.sends++
	}
	t.link(i, t.segs[t.head()].prev)
}

// CanSend returns how many new segments may go now: the least of congestion
// window, peer's credits and Window, less what is in flight. Lost segments
// come first, so they count too: call Retransmit before.
//
// Asking says that there is something to send: if only the peer's closed
// window forbids it, probing that window begins.
func (c *Conn) CanSend(now Time) int {
	credit := int(c.tx.limit.Sub(c.tx.next))
	if credit <= 0 {
		c.block(now)
		return 0
	}
	if c.live.dead {
		return 0
	}
	room := c.tx.window - c.tx.outstanding()
	cwnd := c.cc.window - c.tx.flight - c.tx.nLost
	return max(0, min(credit, room, cwnd))
}

// GiveWay says whether others, which send a segment now and then, wait behind what this
// connection has under way. Then a long round trip shrinks its window further.
func (c *Conn) GiveWay(yes bool) { c.cc.giveWay = yes }

// Send records a new segment of size bytes as sent now and returns its PSN.
// token comes back from Retransmit if the segment must be resent.
//
// CanSend must have allowed it. A segment that must go regardless (a
// Terminate) may pass credits and congestion window, but not Window: there is
// no room to record it, so that Send only counts as Stats.Refused, and the
// PSN returned stays the next one.
func (c *Conn) Send(now Time, size int, token uint64) wire.PSN {
	t := &c.tx
	psn := t.next
	idle := t.outstanding() == 0
	if t.outstanding() == t.window {
		c.stats.Refused++
		return psn
	}
	if t.outstanding() == t.ring() {
		t.grow(c.cfg.Rings)
	}
	i := t.index(psn)
	t.segs[i].token, t.segs[i].sends = token, 0
	t.next = psn.Add(1)
	t.most = max(t.most, t.outstanding())
	t.transmit(now, i)
	if idle {
		c.startTimers(now)
	}
	c.tmr.lastSend = now
	c.noteWindowUse(psn)
	c.ack.reverse(now)
	c.stats.Sent++
	c.stats.SentBytes += uint64(size)
	return psn
}

// noteWindowUse looks at how much of the window the segment psn leaves.
//
// Acknowledgement without delay is asked for when the window is at least half
// used, every quarter of it: the peer's own policy doesn't know how small our
// window is, and this keeps the window from running dry behind it. Not on
// every segment of a full window, or acknowledgements would fragment the
// stream into single segments.
func (c *Conn) noteWindowUse(psn wire.PSN) {
	t := &c.tx
	used := t.flight + t.nLost
	if used >= c.cc.window {
		c.cc.limited = true
	}
	window := min(c.cc.window, t.window, t.outstanding()+max(0, int(t.limit.Sub(t.next))))
	since := int(t.next.Sub(t.lastAR))
	t.wantAR = 2*used >= window && since >= max(1, window/4)
	if t.wantAR {
		t.lastAR = t.next
	} else if since > t.window {
		t.lastAR = psn // keep the distance small, so that it never wraps
	}
}

// WantAR reports whether the packet of the last Send or Retransmit should
// carry the AR flag, "acknowledge without delay". It says so once. more says that
// another segment follows; where none does, the peer may wait for one before it
// acknowledges (ackPolicy), which is said only with as much unacknowledged as is
// acknowledged at once elsewhere, so that ping-pong goes on as it does there.
func (c *Conn) WantAR(more bool) bool {
	t := &c.tx
	want := t.wantAR
	t.wantAR = false
	if !more && c.cfg.Batches && t.outstanding() >= maxEvery {
		want, t.lastAR = true, t.next
	}
	return want
}
