package qp

const (
	// readAheadChunk is the number of bytes read at a time from a source on the fallback path.
	// A segment does not cross the end of a chunk, so that a lost segment can be built
	// again with the same length.
	readAheadChunk = 64 << 10
	// readAheadDepth is the largest number of chunks of one source in memory.
	readAheadDepth = 16
	// MaxReadAhead bounds the bytes read ahead for one client, and MaxUnwritten the bytes
	// that wait to be written to its memory.
	MaxReadAhead = 64 << 20
	MaxUnwritten = 16 << 20
)

// ReadAhead reads a source on the fallback path into private memory, chunk by chunk and ahead of
// need. If the client is trusted, the worker reads the memory itself, no further than the next
// send needs. A chunk stays until the peer has acknowledged it, because its segments may have to
// be sent again.
type ReadAhead struct {
	q         *QP
	client    *Client // whose memory is read; its budget pays
	of        request
	length    uint32
	list      []element     // memory to read
	chunks    []*chunkAhead // in order, from the oldest that the peer has not acknowledged
	requested uint32        // bytes requested so far
	available uint32        // bytes read so far
	needed    uint32        // offset last passed to Need
	needing   bool          // Need is running
	lost      bool          // memory of a peer's Read could not be read
	waiting   int           // 1 + index in Client.wantReadAhead; 0: not waiting
}

type chunkAhead struct {
	off     uint32
	buf     []byte
	mark    uint64 // mark of its last segment, once sent
	sent    bool
	dropped bool
	landed  bool
}

// newReadAhead returns a ReadAhead of the memory in list, which is client c's.
func newReadAhead(q *QP, c *Client, of request, length uint32, list []element) *ReadAhead {
	return &ReadAhead{q: q, client: c, of: of, length: length, list: list}
}

// Fill requests the next chunks, as far as readAheadDepth and the client's budget allow.
func (s *ReadAhead) Fill() {
	for s.requested < s.length && len(s.chunks) < readAheadDepth {
		if s.client.Space.Direct() && s.requested > s.needed {
			return
		}
		n := min(readAheadChunk, s.length-s.requested)
		if !s.client.reserve(s, bufferSize(n)) {
			return // continued when the client's other chunks are freed
		}
		c := &chunkAhead{off: s.requested, buf: s.q.t.buffers.take(n)}
		s.chunks = append(s.chunks, c)
		s.requested += n
		s.q.fetchList(s.of, s.list, c.off, c.buf, func() { s.arrived(c) })
	}
}

// Need reports whether the byte at off can be sent now. If not, it requests the chunk.
func (s *ReadAhead) Need(off uint32) bool {
	if s.Has(off) {
		return true
	}
	s.needed, s.needing = off, true
	s.Fill()
	s.needing = false
	return s.Has(off)
}

func (s *ReadAhead) arrived(c *chunkAhead) {
	c.landed = true
	if c.dropped {
		s.free(c)
		return
	}
	s.available = c.off + uint32(len(c.buf)) // chunks come in order
	if !s.needing {
		s.q.t.Ready(s.q)
	}
}

// free frees a chunk that has been read and is no longer needed.
func (s *ReadAhead) free(c *chunkAhead) {
	s.client.unreserve(s.q.t, cap(c.buf))
	s.q.t.buffers.give(c.buf)
	c.buf = nil
}

// bufferPool keeps free chunk buffers of two sizes for reuse.
type bufferPool struct{ small, large [][]byte }

const (
	smallChunk  = 4 << 10
	keptBuffers = 64 // buffers of each size
)

// bufferSize returns the size of the buffer for n bytes.
func bufferSize(n uint32) int {
	if n <= smallChunk {
		return smallChunk
	}
	return readAheadChunk
}

func (s *bufferPool) of(size int) *[][]byte {
	if size == smallChunk {
		return &s.small
	}
	return &s.large
}

func (s *bufferPool) take(n uint32) []byte {
	kept := s.of(bufferSize(n))
	last := len(*kept) - 1
	if last < 0 {
		return make([]byte, n, bufferSize(n))
	}
	b := (*kept)[last]
	*kept = (*kept)[:last]
	return b[:n]
}

func (s *bufferPool) give(b []byte) {
	if kept := s.of(cap(b)); len(*kept) < keptBuffers {
		*kept = append(*kept, b)
	}
}

// Has reports whether the byte at off has been read; true also at the end of the source.
func (s *ReadAhead) Has(off uint32) bool { return s.available > off || s.available == s.length }

// Bytes returns the bytes from off to the end of off's chunk.
func (s *ReadAhead) Bytes(off uint32) []byte {
	for _, c := range s.chunks {
		if off-c.off < uint32(len(c.buf)) {
			return c.buf[off-c.off:]
		}
	}
	return nil
}

// Run returns how many of the bytes starting at off, at most limit, lie in one chunk.
func (s *ReadAhead) Run(off, limit uint32) uint32 {
	return min(limit, s.length-off, readAheadChunk-off%readAheadChunk)
}

// Sent records that all bytes before off were sent, the last of them with this mark.
func (s *ReadAhead) Sent(off uint32, mark uint64) {
	for _, c := range s.chunks {
		if !c.sent && c.off+uint32(len(c.buf)) <= off {
			c.sent, c.mark = true, mark
		}
	}
}

// Acked frees the chunks that the peer has acknowledged, up to mark, and requests more if reading
// has begun.
func (s *ReadAhead) Acked(mark uint64) {
	for len(s.chunks) > 0 && s.chunks[0].sent && s.chunks[0].mark <= mark {
		s.free(s.chunks[0])
		s.chunks = s.chunks[1:]
	}
	if s.requested > 0 {
		s.Fill()
	}
}

// Drop frees all chunks. A chunk that is still being read is freed when the read has ended.
func (s *ReadAhead) Drop() {
	for _, c := range s.chunks {
		if c.landed {
			s.free(c)
		} else {
			c.dropped = true
		}
	}
	s.chunks = nil
	s.requested = s.length
	s.client.stopWaiting(s)
}

// BytesAhead returns the number of bytes read ahead for the client.
func (c *Client) BytesAhead() int { return c.bytesAhead }

// Unwritten returns the number of bytes that wait to be written to the client's memory.
func (c *Client) Unwritten() int { return c.unwritten }

// reserve takes a buffer of n bytes, and its overhead, from the client's budget. It returns false
// if the budget is used up; s's queue pair is then put in line when budget is returned.
func (c *Client) reserve(s *ReadAhead, n int) bool {
	cost := n + perWait
	if c.bytesAhead+cost > MaxReadAhead {
		if s.waiting == 0 {
			c.wantReadAhead = append(c.wantReadAhead, s)
			s.waiting = len(c.wantReadAhead)
		}
		return false
	}
	c.bytesAhead += cost
	return true
}

func (c *Client) unreserve(t *Table, n int) {
	c.bytesAhead -= n + perWait
	for i, s := range c.wantReadAhead {
		c.wantReadAhead[i], s.waiting = nil, 0
		t.Ready(s.q)
	}
	c.wantReadAhead = c.wantReadAhead[:0]
}

// stopWaiting removes a ReadAhead that has ended from the client's waiting list. The last element
// takes its place.
func (c *Client) stopWaiting(s *ReadAhead) {
	if s.waiting == 0 {
		return
	}
	end := len(c.wantReadAhead) - 1
	last := c.wantReadAhead[end]
	c.wantReadAhead[s.waiting-1], last.waiting = last, s.waiting
	c.wantReadAhead[end], s.waiting = nil, 0
	c.wantReadAhead = c.wantReadAhead[:end]
}

// fetchList reads len(buf) bytes at offset off of a work request's list, and then calls then.
func (q *QP) fetchList(of request, list []element, off uint32, buf []byte, then func()) {
	parts := 1 // keeps then from being called before all reads are requested
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
