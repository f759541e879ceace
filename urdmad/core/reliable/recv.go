package reliable

import "urdma/wire"

// Verdict says how a received segment is handled.
type Verdict uint8

const (
	// Deliver: it is the next in order; the cumulative acknowledgement has advanced past it. Loop over
	// NextHeld afterwards, at once or in parts.
	Deliver Verdict = iota
	// Hold: it is inside the window but out of order; the caller keeps it, in slot psn % RecvWindow, until
	// NextHeld returns its PSN.
	Hold
	// Duplicate: already received; drop it.
	Duplicate
	// Outside: it is outside the window; drop it.
	Outside
)

// String returns the verdict's name for transcripts.
func (v Verdict) String() string {
	switch v {
	case Deliver:
		return "deliver"
	case Hold:
		return "hold"
	case Duplicate:
		return "duplicate"
	}
	return "outside"
}

// leastOld is how far before the next PSN in order a segment still counts as a duplicate, which is
// answered, rather than as a stranger's. If the window is larger, the window counts. The bound is the
// number of segments that 12-bit credits allow a peer to have outstanding.
const leastOld = wire.MaxCredits + 1

// receiver is the receiving half.
type receiver struct {
	next       wire.PSN // cumulative acknowledgement: next PSN in order
	end        wire.PSN // one past the last held segment; next if none is held
	recent     wire.PSN // the most recently held segment, while it is held
	unreported wire.PSN // start of the runs for which the last SACK had no space
	held       slotSet  // held segments, within (next, next+its size); grows up to window
	rings      *Rings   // memory for growth
	nHeld      int
	window     int

	credits int      // advertised, 0..window
	edge    wire.PSN // one past the last segment that the latest credits allow
	allowed wire.PSN // one past the last segment that any credits allowed
}

func (r *receiver) init(cfg *Config) {
	*r = receiver{
		next: cfg.PeerISN, end: cfg.PeerISN,
		held: newSlotSet(min(leastHeld, cfg.RecvWindow)), rings: cfg.Rings,
		window: cfg.RecvWindow, credits: cfg.RecvWindow,
	}
	r.edge = r.next.Add(uint32(r.credits))
	r.allowed = r.edge
}

// oldest returns how far back segments count as duplicates: the peer's outstanding segments lie within our
// window, however old they are.
func (r *receiver) oldest() int { return max(leastOld, r.window) }

// Judge returns the verdict on the segment psn, and changes nothing. If the caller can keep the segment, it passes the
// verdict to OnData.
//
// A segment is accepted up to the end of RecvWindow, and up to the furthest credits ever given to the peer.
// The present credits may be fewer: they may have shrunk after the segment was sent.
func (c *Conn) Judge(psn wire.PSN) Verdict {
	r := &c.rx
	ahead := int(psn.Sub(r.next))
	switch {
	case ahead < 0 && ahead >= -r.oldest(), ahead >= 0 && psn.Before(r.end) && r.held.has(psn):
		return Duplicate
	case ahead < 0 || ahead >= r.window || !psn.Before(r.allowed):
		return Outside
	case ahead == 0:
		return Deliver
	}
	return Hold
}

// OnData records the arrival of the segment psn, for which Judge has just returned v. ackRequested is the AR flag of
// its packet.
func (c *Conn) OnData(now Time, psn wire.PSN, ackRequested bool, v Verdict) {
	c.hear(now)
	r := &c.rx
	switch v {
	case Deliver:
		c.accept(now)
		if ackRequested || r.nHeld > 0 { // part of a hole is filled
			c.ack.acknowledgeNow(now)
		}
	case Duplicate:
		c.stats.Duplicates++
		c.ack.acknowledgeNow(now)
	case Hold:
		c.hold(now, psn, ackRequested)
	case Outside:
		c.stats.Outside++
		if ahead := int(psn.Sub(r.next)); ahead >= 0 && ahead < r.oldest() {
			c.ack.acknowledgeNow(now) // for a peer that doesn't know our window
		}
	}
}

// OnAckRequested handles a packet without a segment that has the AR flag: a probe from the peer.
func (c *Conn) OnAckRequested(now Time) {
	c.hear(now)
	c.ack.acknowledgeNow(now)
}

// accept advances the cumulative acknowledgement past the segment that arrived.
func (c *Conn) accept(now Time) {
	c.rx.advance()
	c.stats.Delivered++
	c.ack.inOrder(now)
}

func (r *receiver) advance() {
	r.next = r.next.Add(1)
	if r.end.Before(r.next) {
		r.end = r.next
	}
}

func (c *Conn) hold(now Time, psn wire.PSN, ackRequested bool) {
	r := &c.rx
	gap := psn.After(r.end) || psn == r.end && r.nHeld == 0
	r.growHeld(int(psn.Sub(r.next)))
	r.held.add(psn)
	r.nHeld++
	r.recent = psn
	if !psn.Before(r.end) {
		r.end = psn.Add(1)
	}
	c.stats.Held++
	c.ack.outOfOrder(now, gap || ackRequested)
}

// NextHeld returns the PSN of the next segment in order if it is held, and advances the cumulative
// acknowledgement past it. Call it until !ok after each Deliver.
func (c *Conn) NextHeld() (wire.PSN, bool) {
	r := &c.rx
	psn := r.next
	if r.nHeld == 0 || !r.held.has(psn) {
		return 0, false
	}
	r.held.remove(psn)
	r.nHeld--
	r.advance()
	r.shrinkHeld()
	c.stats.Delivered++
	return psn, true
}

// SetCredits sets how many segments past the cumulative acknowledgement the peer may send, at most
// RecvWindow: the caller's flow control. The peer is informed at once when the window opens from closed or
// by half of RecvWindow.
func (c *Conn) SetCredits(n int) {
	r := &c.rx
	r.credits = min(max(n, 0), r.window)
	c.ack.setWindow(r.credits)
	opened := int(r.next.Add(uint32(r.credits)).Sub(r.edge))
	if opened >= r.window/2 && opened > 0 || r.credits > 0 && !r.edge.After(r.next) {
		c.ack.acknowledgeNow(c.live.since)
	}
}

// Header returns the acknowledgement and credits for an outgoing packet of any kind, and records that they
// are sent.
func (c *Conn) Header() (ack wire.PSN, credits uint32) {
	r := &c.rx
	c.ack.headerSent()
	r.edge = r.next.Add(uint32(r.credits))
	if r.edge.After(r.allowed) {
		r.allowed = r.edge
	}
	return r.next, uint32(r.credits)
}

// SackRuns appends the runs of held segments to dst, for a SACK packet, and records that it is sent. The
// run with the segment that arrived last comes first. The others follow in ascending order, starting where
// the last SACK ran out of space. It doesn't allocate if dst has capacity for wire.MaxSackRuns more.
func (c *Conn) SackRuns(dst []wire.SackRun) []wire.SackRun {
	c.ack.sackSent()
	r := &c.rx
	if r.nHeld == 0 {
		return dst
	}
	p, _ := r.runFrom(r.next)
	if !r.held.has(r.recent) || !r.recent.After(r.next) || !r.recent.Before(r.end) {
		r.recent = p.First
	}
	newest := r.runAround(r.recent)
	dst = append(dst, newest)
	return r.appendOthers(dst, newest, wire.MaxSackRuns-1)
}

// appendOthers appends up to most runs other than the newest: runs for which the last SACK had no space
// come first.
func (r *receiver) appendOthers(dst []wire.SackRun, newest wire.SackRun, most int) []wire.SackRun {
	from := r.next
	// false if merged
	if r.unreported.After(r.next) && r.unreported.Before(r.end) && !r.held.has(r.unreported.Add(^uint32(0))) {
		from = r.unreported
	}
	stop, wrapped := r.end, false
	for p := from; ; {
		run, ok := r.runFrom(p)
		if !ok || !run.First.Before(stop) {
			if wrapped || from == r.next {
				r.unreported = r.next
				return dst
			}
			p, stop, wrapped = r.next, from, true
			continue
		}
		if p = run.End; run == newest {
			continue
		}
		if most == 0 {
			r.unreported = run.First
			return dst
		}
		dst = append(dst, run)
		most--
	}
}

// runAround returns the run that contains the held segment p. It doesn't iterate over earlier runs, of
// which a peer can create half as many as the window has segments.
func (r *receiver) runAround(p wire.PSN) wire.SackRun {
	before := r.held.membersBefore(p, int(p.Sub(r.next)))
	return wire.SackRun{First: p.Add(-uint32(before)), End: p.Add(uint32(r.held.distanceToGap(p, int(r.end.Sub(p)))))}
}

// runFrom returns the first run of held segments that ends after p, from p on.
func (r *receiver) runFrom(p wire.PSN) (wire.SackRun, bool) {
	n := int(r.end.Sub(p))
	off := r.held.distanceToMember(p, n)
	if off >= n {
		return wire.SackRun{}, false
	}
	first := p.Add(uint32(off))
	return wire.SackRun{First: first, End: first.Add(uint32(r.held.distanceToGap(first, n-off)))}, true
}
