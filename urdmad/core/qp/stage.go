package qp

import (
	"math"

	"urdma/verbs/abi"
)

const (
	// stageChunk is how much of a source on the fallback path is read at a time.
	// A segment does not reach over the end of a chunk, so that a lost one can be
	// cut again alike.
	stageChunk = 64 << 10
	// stageDepth is how many chunks of one source may be staged.
	stageDepth = 16
	// MaxStaged and MaxUnwritten bound, in bytes, what is staged for one client
	// and what waits to be written to its memory.
	MaxStaged    = 64 << 20
	MaxUnwritten = 16 << 20
)

// Stage is a source on the fallback path, read into private memory chunk by
// chunk, as far ahead as it is needed: of a trusted client, which the worker reads
// itself, no further than what is sent next. A chunk stays until the peer has it,
// because its segments may have to be sent again.
type Stage struct {
	q         *QP
	client    *Client // whose memory it is: bears the cost
	of        request
	length    uint32
	list      []element      // what is read
	chunks    []*stagedChunk // in order, from the oldest that the peer may lack
	requested uint32         // bytes asked for
	available uint32         // bytes that have come
	needed    uint32         // the byte that was needed last
	needing   bool           // its carrier asks right now
	waiting   int            // 1 + its place in Client.wantStage; 0: none
}

type stagedChunk struct {
	off     uint32
	buf     []byte
	mark    uint64 // of the last segment, once it was sent
	sent    bool
	dropped bool
	landed  bool
}

// newStage makes a stage of what a list of a client's memory names.
func newStage(q *QP, c *Client, of request, length uint32, list []element) *Stage {
	return &Stage{q: q, client: c, of: of, length: length, list: list}
}

// Fill asks for the next chunks, as far as depth and the client's budget allow.
func (s *Stage) Fill() {
	for s.requested < s.length && len(s.chunks) < stageDepth {
		if s.client.Space.Direct() && s.requested > s.needed {
			return
		}
		n := min(stageChunk, s.length-s.requested)
		if !s.client.stage(s, bufferSize(n)) {
			return // goes on when some of the client's chunks are done
		}
		c := &stagedChunk{off: s.requested, buf: s.q.t.staging.take(n)}
		s.chunks = append(s.chunks, c)
		s.requested += n
		s.q.fetchList(s.of, s.list, c.off, c.buf, func() { s.arrived(c) })
	}
}

// Need reports whether the byte at off can be sent now, and sees to it that it can be
// soon.
func (s *Stage) Need(off uint32) bool {
	if s.Has(off) {
		return true
	}
	s.needed, s.needing = off, true
	s.Fill()
	s.needing = false
	return s.Has(off)
}

func (s *Stage) arrived(c *stagedChunk) {
	c.landed = true
	if c.dropped {
		s.unstage(c)
		return
	}
	s.available = c.off + uint32(len(c.buf)) // chunks come in order
	if !s.needing {
		s.q.t.Ready(s.q)
	}
}

// unstage frees a chunk that has come and that nobody needs any more.
func (s *Stage) unstage(c *stagedChunk) {
	s.client.unstage(s.q.t, cap(c.buf))
	s.q.t.staging.give(c.buf)
	c.buf = nil
}

// staging keeps buffers of chunks for the next, of two sizes.
type staging struct{ small, large [][]byte }

const (
	smallChunk  = 4 << 10
	keptStaging = 64 // buffers of each size
)

// bufferSize is how long the buffer for n bytes is.
func bufferSize(n uint32) int {
	if n <= smallChunk {
		return smallChunk
	}
	return stageChunk
}

func (s *staging) of(size int) *[][]byte {
	if size == smallChunk {
		return &s.small
	}
	return &s.large
}

func (s *staging) take(n uint32) []byte {
	kept := s.of(bufferSize(n))
	last := len(*kept) - 1
	if last < 0 {
		return make([]byte, n, bufferSize(n))
	}
	b := (*kept)[last]
	*kept = (*kept)[:last]
	return b[:n]
}

func (s *staging) give(b []byte) {
	if kept := s.of(cap(b)); len(*kept) < keptStaging {
		*kept = append(*kept, b)
	}
}

// Has reports whether the byte at off has come, or is the end.
func (s *Stage) Has(off uint32) bool { return s.available > off || s.available == s.length }

// Bytes returns what was staged from off to the end of off's chunk.
func (s *Stage) Bytes(off uint32) []byte {
	for _, c := range s.chunks {
		if off-c.off < uint32(len(c.buf)) {
			return c.buf[off-c.off:]
		}
	}
	return nil
}

// Run is how many of the bytes from off on, at most limit, lie in one chunk.
func (s *Stage) Run(off, limit uint32) uint32 {
	return min(limit, s.length-off, stageChunk-off%stageChunk)
}

// Sent notes that all before off went out, the last of it with a mark.
func (s *Stage) Sent(off uint32, mark uint64) {
	for _, c := range s.chunks {
		if !c.sent && c.off+uint32(len(c.buf)) <= off {
			c.sent, c.mark = true, mark
		}
	}
}

// Acked frees the chunks that were carried up to mark, and asks for more if it has begun.
func (s *Stage) Acked(mark uint64) {
	for len(s.chunks) > 0 && s.chunks[0].sent && s.chunks[0].mark <= mark {
		s.unstage(s.chunks[0])
		s.chunks = s.chunks[1:]
	}
	if s.requested > 0 {
		s.Fill()
	}
}

// Drop frees all chunks; those that are still being read when they have come.
func (s *Stage) Drop() {
	for _, c := range s.chunks {
		if c.landed {
			s.unstage(c)
		} else {
			c.dropped = true
		}
	}
	s.chunks = nil
	s.requested = s.length
	s.client.stopWaiting(s)
}

// Staged is how many bytes are staged for the client.
func (c *Client) Staged() int { return c.staged }

// Unwritten bytes wait to be written to the client's memory.
func (c *Client) Unwritten() int { return c.unwritten }

// stage takes a buffer of n bytes from the client's budget, with what it takes besides;
// false if that is used up, and
// then s's queue pair is put in line when some are given back.
func (c *Client) stage(s *Stage, n int) bool {
	cost := n + perWait
	if c.staged+cost > MaxStaged {
		if s.waiting == 0 {
			c.wantStage = append(c.wantStage, s)
			s.waiting = len(c.wantStage)
		}
		return false
	}
	c.staged += cost
	return true
}

func (c *Client) unstage(t *Table, n int) {
	c.staged -= n + perWait
	for i, s := range c.wantStage {
		c.wantStage[i], s.waiting = nil, 0
		t.Ready(s.q)
	}
	c.wantStage = c.wantStage[:0]
}

// stopWaiting takes a stage that has ended out of the client's list; the last takes
// its place.
func (c *Client) stopWaiting(s *Stage) {
	if s.waiting == 0 {
		return
	}
	end := len(c.wantStage) - 1
	last := c.wantStage[end]
	c.wantStage[s.waiting-1], last.waiting = last, s.waiting
	c.wantStage[end], s.waiting = nil, 0
	c.wantStage = c.wantStage[:end]
}

// stageSend makes the stage of a work request, and begins to fill it unless the worker
// reads it itself, much is staged already, or Reads before it may still change what it
// sends (IBV_SEND_FENCE).
func (q *QP) stageSend(wr *SendWR) {
	q.SQ.setStage(wr, newStage(q, q.Client, wr.request(), wr.Length, wr.list))
	if !q.Client.Space.Direct() && wr.Flags&abi.SendFence == 0 && q.Client.staged < MaxStaged/2 {
		wr.stage.Fill()
	}
}

// fetchList reads len(buf) bytes from off on of what a list of a work request names.
func (q *QP) fetchList(of request, list []element, off uint32, buf []byte, then func()) {
	parts := 1 // until all were asked for
	each := func() {
		if parts--; parts == 0 {
			then()
		}
	}
	defer each()
	for j := range list {
		s := &list[j]
		if off >= s.n {
			off -= s.n
			continue
		}
		n := min(uint32(len(buf)), s.n-off)
		parts++
		q.readMemory(of, s.region, s.va+uint64(off), buf[:n], each)
		if buf = buf[n:]; len(buf) == 0 {
			return
		}
		off = 0
	}
}

// Here reports whether the byte at off of the work request's source can be read
// now, and sees to it that it can be soon.
func (wr *SendWR) Here(off uint32) bool {
	return wr.stage == nil || wr.stage.Need(off)
}

// Run is how many bytes from off on, at most limit, one segment carries.
func (wr *SendWR) Run(off, limit uint32) uint32 {
	if wr.stage != nil && !wr.IsRead() {
		return wr.stage.Run(off, limit)
	}
	return min(limit, wr.Length-off)
}

// Consumed frees what was staged of the bytes that were sent: nobody will ask for
// them again.
func (wr *SendWR) Consumed() {
	if wr.stage != nil {
		wr.stage.Acked(math.MaxUint64)
	}
}

func (s *SendQueue) setStage(wr *SendWR, v *Stage) {
	wr.stage = v
	s.stages++
}

func (s *SendQueue) dropStage(wr *SendWR) {
	if wr.stage != nil {
		wr.stage.Drop()
		wr.stage = nil
		s.stages--
	}
}

// stagesAcked frees what was staged of work requests that are under way, as far
// as the peer has it.
func (s *SendQueue) stagesAcked(mark uint64) {
	if s.stages == 0 {
		return
	}
	for i := s.head; i != s.tail && i != s.next+1; i++ {
		if v := s.At(i).stage; v != nil {
			v.Acked(mark)
		}
	}
}
