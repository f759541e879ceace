package engine

import "urdma/urdmad/reliable"

// This file is what looking inside needs of the data path. All of it runs on
// the worker's thread and copies.

// QueueFill says how full a queue pair is.
type QueueFill struct {
	SendDepth, SendFill int    // slots, and those posted and not completed
	RecvDepth, RecvFill int    // slots, and those posted and not consumed
	ReadsOut, ReadsIn   int    // Reads under way: asked for by us, by the peer
	FallbackWaiting     uint64 // writes on the fallback path that have not ended
}

// Fill returns how full the queue pair is. Posts that the engine has not looked
// at yet count as well.
func (qp *QP) Fill() QueueFill {
	f := QueueFill{SendDepth: qp.Ring.SQ.Slots(), SendFill: qp.Outstanding(), RecvDepth: qp.Ring.RQ.Slots(),
		ReadsOut: qp.readsOut, ReadsIn: int(qp.irqTail - qp.irqHead), FallbackWaiting: qp.asyncIssued - qp.asyncDone}
	if prod, err := qp.Ring.SQ.Prod(qp.sqHead); err == nil {
		f.SendFill = int(prod - qp.sqHead)
	}
	if prod, err := qp.Ring.RQ.Prod(qp.rqHead); err == nil {
		f.RecvFill = int(prod - qp.rqHead)
	}
	return f
}

// Gone reports whether the queue pair was removed.
func (qp *QP) Gone() bool { return qp.gone }

// Overrun reports whether completions were lost.
func (c *CQ) Overrun() bool { return c.overrun }

// Users is how many times a queue pair completes here: once for its sends and
// once for its receives.
func (c *CQ) Users() int { return c.users }

// ConnState is a connection on the wire as it is now.
type ConnState struct {
	State    string
	Extended bool
	Payload  int // bytes in a tagged segment
	Traffic  Traffic
	Path     reliable.Stats
}

// Traffic is what a connection has sent and received, in both layers' words.
type Traffic struct {
	Conn ConnStats
	Rel  reliable.Stats // its counts only
}

var connStates = [...]string{connOpening: "opening", connOpen: "open", connDraining: "draining", connFin: "closing",
	connClosed: "closed"}

// Inspect returns a connection's state; ok is false for one that does not use
// the wire, or not yet.
func (c *Conn) Inspect() (s ConnState, ok bool) {
	if c.Local() || c.state == connOpening {
		return s, false
	}
	s = ConnState{State: connStates[c.state], Extended: c.extended, Payload: int(c.payloadMax[1]), Path: c.rel.Stats()}
	s.Traffic = Traffic{c.Stats, s.Path}
	return s, true
}

// Add adds the counts of u to t.
func (t *Traffic) Add(u *Traffic) {
	t.Conn.TxPackets += u.Conn.TxPackets
	t.Conn.RxPackets += u.Conn.RxPackets
	r, v := &t.Rel, &u.Rel
	r.Sent += v.Sent
	r.SentBytes += v.SentBytes
	r.Resent += v.Resent
	r.FastLost += v.FastLost
	r.TailProbes += v.TailProbes
	r.Timeouts += v.Timeouts
	r.Needless += v.Needless
	r.Delivered += v.Delivered
	r.Held += v.Held
	r.Duplicates += v.Duplicates
	r.Outside += v.Outside
}

// Add adds the counts of u to s.
func (s *QPStats) Add(u *QPStats) {
	s.SendsPosted += u.SendsPosted
	s.RecvsPosted += u.RecvsPosted
	s.MessagesSent += u.MessagesSent
	s.MessagesRecv += u.MessagesRecv
	s.BytesSent += u.BytesSent
	s.BytesRecv += u.BytesRecv
	s.FallbackJobs += u.FallbackJobs
}

// PastTraffic is the traffic on device dev of connections that have left their
// queue pairs. With that of every queue pair's connection it is all there was.
func (e *Engine) PastTraffic(dev int) Traffic { return e.ports[dev].past }

// PastWork is the work of queue pairs that were removed.
func (e *Engine) PastWork() QPStats { return e.past }

// Core is the CPU that the worker runs on.
func (e *Engine) Core() int { return int(int32(e.core)) }

// remember keeps the counts of a connection that leaves its queue pair.
func (c *Conn) remember() {
	if s, ok := c.Inspect(); ok {
		c.port.past.Add(&s.Traffic)
	}
}
