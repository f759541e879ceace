package reliable

import "urdma/wire"

// segment is the record of one unacknowledged segment, 32 bytes.
type segment struct {
	token uint64
	sent  Time   // time of the last transmission
	order uint32 // number of that transmission; it orders all transmissions of the connection
	prev  uint32 // neighbours in the flight list
	next  uint32
	sends uint8 // number of transmissions, saturating
}

// sender is the sending half. Each PSN in [una, next) is in exactly one of
// three states: in flight (on the flight list), lost (waiting to be resent),
// or sacked (received by the peer out of order). So
//
//	flight + nLost + nSacked == next - una <= window
type sender struct {
	una     wire.PSN // first unacknowledged
	next    wire.PSN // next new
	limit   wire.PSN // one past the last segment that the peer's credits allow
	credits uint32   // the peer's latest credits

	records         // their number changes (rings.go)
	window  int     // Config.Window: the greatest number of records
	least   records // the smallest ring, which is kept
	needed  int     // used length of the ring that was returned last
	most    int     // greatest number of outstanding segments since then
	flight  int

	nSacked int
	nLost   int
	order   uint32 // number of the last transmission

	// probe is a segment to resend regardless of the congestion window: the tail loss probe, or the first
	// unacknowledged segment after a timeout.
	probe    wire.PSN
	hasProbe bool

	wantAR bool     // the packet just recorded asks for an acknowledgement
	lastAR wire.PSN // the last new segment that asked for an acknowledgement
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

// link inserts slot i into the flight list after slot at; unlink removes it.
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

// transmit records that slot i is sent now, as the newest transmission.
func (t *sender) transmit(now Time, i uint32) {
	t.order++
	s := &t.segs[i]
	s.sent, s.order = now, t.order
	if s.sends < 255 {
		s.sends++
	}
	t.link(i, t.segs[t.head()].prev)
}

// CanSend returns how many new segments may be sent now: the minimum of congestion window, peer's credits
// and Window, less the segments in flight. Lost segments are resent first, so they count as in flight: call
// Retransmit before.
//
// A call implies that there is something to send: if only the peer's closed window forbids it, probing of
// that window begins.
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

// GiveWay sets whether connections that send single segments wait behind this connection's segments. Then
// long round trips shrink its window further.
func (c *Conn) GiveWay(yes bool) { c.cc.giveWay = yes }

// Send records a new segment of size bytes as sent now and returns its PSN. Retransmit returns token if the
// segment must be resent.
//
// CanSend must have allowed it. A segment that must be sent anyway (a Terminate) may exceed credits and
// congestion window, but not Window: without a free record, Send only counts it in Stats.Refused, and
// returns a PSN that the next segment will have too.
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
	c.ack.dataSent(now)
	c.stats.Sent++
	c.stats.SentBytes += uint64(size)
	return psn
}

// noteWindowUse asks for an acknowledgement if the segment psn leaves little of the window.
//
// It asks when at least half of the window is used, once for each quarter of the window: the peer's policy
// doesn't know how small our window is, and this keeps the window from being exhausted. Asking with every
// segment of a full window would make the acknowledgements break the stream up into single segments.
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

// WantAR reports, once, whether the packet of the last Send or Retransmit should carry the AR flag,
// "acknowledge without delay". more says that another segment follows. If none does, the peer may wait for
// one before it acknowledges (ackPolicy). The flag is set then only if at least as many segments are
// unacknowledged as are acknowledged at once without Batches, so that ping-pong is not affected.
func (c *Conn) WantAR(more bool) bool {
	t := &c.tx
	want := t.wantAR
	t.wantAR = false
	if !more && c.cfg.Batches && t.outstanding() >= maxEvery {
		want, t.lastAR = true, t.next
	}
	return want
}
