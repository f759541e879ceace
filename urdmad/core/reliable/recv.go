package reliable

import "urdma/wire"

// Verdict says what became of an arriving segment.
type Verdict uint8

const (
	// Deliver: it is the next in order; the cumulative acknowledgement has
	// moved past it. Loop over NextHeld afterwards, at once or a part at a time.
	Deliver Verdict = iota
	// Hold: inside the window but out of order; the caller keeps it, in slot
	// psn % RecvWindow, until NextHeld returns it.
	Hold
	// Duplicate: already received; drop it.
	Duplicate
	// Outside: no segment of this connection's window; drop it.
	Outside
)

// String names the verdict for transcripts.
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

// leastOld is how far behind the window a segment still counts as a duplicate, to be
// answered, and not as a stranger's, unless the window itself is larger: what a peer
// may have sent, and send again, is bounded by what 12 bits of credits could state.
const leastOld = wire.MaxCredits + 1

// receiver is the receiving half.
type receiver struct {
	next   wire.PSN // cumulative acknowledgement: next PSN in order
	end    wire.PSN // one past the last held; next if none is held
	recent wire.PSN // the last held, while it is held
	unsaid wire.PSN // where the runs begin that the last SACK had no room for
	held   slotSet  // members within (next, next+its size); grows up to window
	rings  *Rings   // where it grows from
	nHeld  int
	window int

	credits int      // advertised, 0..window
	edge    wire.PSN // one past the last the peer has been allowed by the last packet
	allowed wire.PSN // one past the last it was ever allowed
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

// oldest is how far back segments are duplicates: what the peer may have under way
// lies within a window of ours, however old.
func (r *receiver) oldest() int { return max(leastOld, r.window) }

// Judge says what OnData would do with the segment psn, and does nothing: a
// caller that cannot take the segment does not pass it on.
//
// What is accepted ends where RecvWindow does, and where the furthest credits
// ever given to the peer do. The present credits may be fewer: they may
// have shrunk after the segment was sent.
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

// OnData takes the arrival of the segment psn. ackRequested is the AR flag of
// its packet.
func (c *Conn) OnData(now Time, psn wire.PSN, ackRequested bool) Verdict {
	v := c.Judge(psn)
	c.OnJudged(now, psn, ackRequested, v)
	return v
}

// OnJudged is OnData for a segment of which Judge has just said v.
func (c *Conn) OnJudged(now Time, psn wire.PSN, ackRequested bool, v Verdict) {
	c.hear(now)
	r := &c.rx
	switch v {
	case Deliver:
		c.accept(now)
		if ackRequested || r.nHeld > 0 { // part of a hole is filled
			c.ack.atOnce(now)
		}
	case Duplicate:
		c.stats.Duplicates++
		c.ack.atOnce(now)
	case Hold:
		c.hold(now, psn, ackRequested)
	case Outside:
		c.stats.Outside++
		if ahead := int(psn.Sub(r.next)); ahead >= 0 && ahead < r.oldest() {
			c.ack.atOnce(now) // a peer that doesn't know our window
		}
	}
}

// OnAckRequested takes a packet without a segment that has the AR flag: the
// peer probes.
func (c *Conn) OnAckRequested(now Time) {
	c.hear(now)
	c.ack.atOnce(now)
}

// accept moves the cumulative acknowledgement past the segment that arrived.
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

// NextHeld consumes the next segment in order if it was held: the cumulative
// acknowledgement moves past it and its PSN is returned. Call it until !ok
// after each Deliver.
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

// SetCredits sets how many segments past the cumulative acknowledgement the
// peer may send, at most RecvWindow: the caller's backpressure. Opening the
// window, from closed or by half of RecvWindow, is told the peer at once.
func (c *Conn) SetCredits(n int) {
	r := &c.rx
	r.credits = min(max(n, 0), r.window)
	c.ack.credited(r.credits)
	opened := int(r.next.Add(uint32(r.credits)).Sub(r.edge))
	if opened >= r.window/2 && opened > 0 || r.credits > 0 && !r.edge.After(r.next) {
		c.ack.atOnce(c.live.since)
	}
}

// Header returns the acknowledgement and credits for an outgoing packet of
// any kind, and notes that they went out.
func (c *Conn) Header() (ack wire.PSN, credits uint32) {
	r := &c.rx
	c.ack.wentOut()
	r.edge = r.next.Add(uint32(r.credits))
	if r.edge.After(r.allowed) {
		r.allowed = r.edge
	}
	return r.next, uint32(r.credits)
}

// SackRuns appends the runs of held segments to dst, for a SACK packet, and
// notes that it goes out. The run that holds the segment which arrived last
// comes first, the others follow lowest first, from where the last SACK had no more room. It doesn't
// allocate where wire.MaxSackRuns more fit into dst's capacity.
func (c *Conn) SackRuns(dst []wire.SackRun) []wire.SackRun {
	c.ack.sackWentOut()
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

// appendOthers appends up to most runs beside the newest: those that the last SACK
// had no room for come before those it had.
func (r *receiver) appendOthers(dst []wire.SackRun, newest wire.SackRun, most int) []wire.SackRun {
	from := r.next
	if r.unsaid.After(r.next) && r.unsaid.Before(r.end) && !r.held.has(r.unsaid.Add(^uint32(0))) { // else runs have merged
		from = r.unsaid
	}
	stop, wrapped := r.end, false
	for p := from; ; {
		run, ok := r.runFrom(p)
		if !ok || !run.First.Before(stop) {
			if wrapped || from == r.next {
				r.unsaid = r.next
				return dst
			}
			p, stop, wrapped = r.next, from, true
			continue
		}
		if p = run.End; run == newest {
			continue
		}
		if most == 0 {
			r.unsaid = run.First
			return dst
		}
		dst = append(dst, run)
		most--
	}
}

// runAround returns the run that holds p, which is held. It doesn't walk over those
// before it, of which a peer can make half as many as the window is long.
func (r *receiver) runAround(p wire.PSN) wire.SackRun {
	before := r.held.membersBefore(p, int(p.Sub(r.next)))
	return wire.SackRun{First: p.Add(-uint32(before)), End: p.Add(uint32(r.held.untilOut(p, int(r.end.Sub(p)))))}
}

// runFrom returns the first run of held segments at or after p.
func (r *receiver) runFrom(p wire.PSN) (wire.SackRun, bool) {
	n := int(r.end.Sub(p))
	off := r.held.untilIn(p, n)
	if off >= n {
		return wire.SackRun{}, false
	}
	first := p.Add(uint32(off))
	return wire.SackRun{First: first, End: first.Add(uint32(r.held.untilOut(first, n-off)))}, true
}
