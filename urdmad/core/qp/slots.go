package qp

import "math"

// The private copies of a send queue's slots lie in chunks. A chunk is allocated when work is
// posted and freed when the work has completed. An idle queue pair has at most one chunk, however
// long its queue is, so the memory used depends on the work posted.

// chunkSlots is the number of work requests in a chunk, a power of two.
const chunkSlots = 8

// chunk holds copies of neighbouring slots, with their scatter/gather lists.
type chunk struct {
	wrs   [chunkSlots]SendWR
	width int // elements of each list
}

// maxSpare is the number of free chunks of one width that are kept for reuse.
const maxSpare = 256

// chunkPool keeps free chunks, by width. Their work requests were released. It belongs to the
// worker's thread.
type chunkPool struct {
	spare [MaxSGE + 1][]*chunk
}

func (p *chunkPool) get(width int) *chunk {
	list := p.spare[width]
	if len(list) == 0 {
		c := &chunk{width: width}
		elements := make([]element, chunkSlots*width)
		for i := range c.wrs {
			c.wrs[i].list = elements[i*width : i*width : (i+1)*width]
		}
		return c
	}
	c := list[len(list)-1]
	p.spare[width] = list[:len(list)-1]
	return c
}

func (p *chunkPool) put(c *chunk) {
	if list := p.spare[c.width]; len(list) < maxSpare {
		p.spare[c.width] = append(list, c)
	}
}

// slots are the copies of a send queue's slots. Indices are free-running.
type slots struct {
	chunks []*chunk // index slot/chunkSlots; nil: none of the chunk's slots is in use
	width  int
	mask   uint32
	pool   *chunkPool // nil until the first work request
}

// init sets the size. A queue that does not exist, with 0 entries, gets one slot that is never
// used, so that the oldest and the next work request of any queue can be read.
func (s *slots) init(entries uint32, width int) {
	entries = max(entries, 1)
	s.chunks = make([]*chunk, (entries+chunkSlots-1)/chunkSlots)
	s.width, s.mask = width, entries-1
}

// vacant stands for a slot that is not in use. It is never written.
var vacant = SendWR{Op: operationOf(math.MaxUint32)}

// At returns the work request at an index.
func (s *slots) At(i uint32) *SendWR {
	slot := i & s.mask
	c := s.chunks[slot/chunkSlots]
	if c == nil {
		return &vacant
	}
	return &c.wrs[slot%chunkSlots]
}

// use is At for an index that is about to be used; it allocates the chunk.
func (s *slots) use(p *chunkPool, i uint32) *SendWR {
	if c := &s.chunks[i&s.mask/chunkSlots]; *c == nil {
		s.pool = p
		*c = p.get(s.width)
	}
	return s.At(i)
}

// passed frees the chunk that ends with index i, once that index has completed and no newer work
// request, up to tail, uses the chunk's slots again.
func (s *slots) passed(i, tail uint32) {
	first := i &^ (chunkSlots - 1)
	if (i+1)%chunkSlots != 0 || tail-first > s.mask+1 {
		return
	}
	if c := &s.chunks[i&s.mask/chunkSlots]; *c != nil {
		s.pool.put(*c)
		*c = nil
	}
}
